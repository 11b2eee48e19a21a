// A time step of the wave equation on a torus: `next` holds the state before `now`.
kernel void wave_steps(global float *next, global const float *now, int n, float rate) {
    int x = get_global_id(0), y = get_global_id(1), i = y * n + x;
    int left = x ? i - 1 : i + n - 1, right = x < n - 1 ? i + 1 : i - n + 1;
    int up = y ? i - n : i + (n - 1) * n, down = y < n - 1 ? i + n : x;
    next[i] = 2.0f * now[i] - next[i] + rate * (now[left] + now[right] + now[up] + now[down] - 4.0f * now[i]);
}
