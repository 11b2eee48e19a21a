// Levenshtein's distance of two words of 24 bytes, with a row of the table in private memory.
#define LENGTH 24

kernel void edit_distance(global int *distance, global const uchar *left, global const uchar *right) {
    size_t i = get_global_id(0);
    int row[LENGTH + 1];
    for (int k = 0; k <= LENGTH; k++)
        row[k] = k;
    for (int y = 0; y < LENGTH; y++) {
        uchar c = left[i * LENGTH + y];
        int corner = y;
        row[0] = y + 1;
        for (int x = 0; x < LENGTH; x++) {
            int kept = row[x + 1], changed = corner + (c != right[i * LENGTH + x]);
            row[x + 1] = min(min(row[x], kept) + 1, changed);
            corner = kept;
        }
    }
    distance[i] = row[LENGTH];
}
