// European options: the normal distribution by Abramowitz and Stegun's 26.2.17.
float normal(float d) {
    float k = 1.0f / (1.0f + 0.2316419f * fabs(d));
    float p =
        k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
    float tail = 0.39894228f * exp(-0.5f * d * d) * p;
    return d > 0.0f ? 1.0f - tail : tail;
}

kernel void black_scholes(global float *call, global float *put, global const float *price,
                          global const float *strike, global const float *years, float rate,
                          float volatility) {
    size_t i = get_global_id(0);
    float s = price[i], x = strike[i], t = years[i];
    float spread = volatility * sqrt(t);
    float d1 = (log(s / x) + (rate + 0.5f * volatility * volatility) * t) / spread;
    float n1 = normal(d1), n2 = normal(d1 - spread);
    float discounted = x * exp(-rate * t);
    call[i] = s * n1 - discounted * n2;
    put[i] = discounted * (1.0f - n2) - s * (1.0f - n1);
}
