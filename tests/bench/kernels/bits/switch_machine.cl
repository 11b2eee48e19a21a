// A small machine whose next instruction depends on its data: a divergent switch in a loop.
kernel void switch_machine(global uint *to, global const uint *from, int steps) {
    size_t i = get_global_id(0);
    uint a = from[i], b = a * 2654435761u;
    for (int s = 0; s < steps; s++) {
        switch ((a ^ s) & 7) {
        case 0:
            a += b;
            break;
        case 1:
            b ^= a >> 3;
            break;
        case 2:
            a = rotate(a, 5u);
            break;
        case 3:
            b = b * 5 + 1; // falls into the next
        case 4:
            a -= b;
            break;
        case 5:
            b = popcount(a) + b;
            break;
        case 6:
            if (b & 1)
                a = ~a;
            else
                b = max(a, b);
            break;
        default:
            a = mul_hi(a, b) + s;
            break;
        }
        a += 0x9e3779b9u;
    }
    to[i] = a ^ b;
}
