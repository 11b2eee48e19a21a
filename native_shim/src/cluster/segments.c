/* Which machines have which part of a memory object: its segments, one after the other, which cover it. */
#include <stdlib.h>

#include "cluster/internal.h"
#include "memory/mem.h"

/* More of them are not worth their time: then commands are taken to use all. Where each worker has its part,
 * which its neighbours have the ends of, there are as many as there must be. */
enum { MOST_SEGMENTS = 64, SEGMENTS_PER_WORKER = 4 };

bool cld_segments_begin(struct cld_copies *copies, size_t size, bool has_contents) {
    struct cld_segment *segment = calloc(1, sizeof *segment);
    if (!segment)
        return false;
    *segment = (struct cld_segment){.end = size, .is_here = true};
    if (!has_contents)
        cld_set_fill(&segment->valid);
    copies->segments = segment;
    copies->segment_count = 1;
    return true;
}

void cld_segments_free(struct cld_copies *copies) {
    while (copies->segments) {
        struct cld_segment *segment = copies->segments;
        copies->segments = segment->next;
        free(segment);
    }
}

bool cld_segments_are_many(const struct cld_copies *copies, uint32_t workers) {
    return copies->segment_count > MOST_SEGMENTS && copies->segment_count / SEGMENTS_PER_WORKER > workers;
}

static struct cld_segment *spare; /* a list, of so many */
static uint32_t spare_count;

bool cld_segments_reserve(uint32_t count) {
    while (spare_count < count) {
        struct cld_segment *segment = malloc(sizeof *segment);
        if (!segment)
            return false;
        segment->next = spare;
        spare = segment;
        spare_count++;
    }
    return true;
}

static struct cld_segment *take_spare(void) {
    struct cld_segment *segment = spare;
    if (segment) {
        spare = segment->next;
        spare_count--;
    }
    return segment;
}

/* Has a segment begin there, where one does not yet; NULL: no memory. *before is set to the one before it, or
 * stays if it is the one that the search begins with. */
static struct cld_segment *cut_at(struct cld_copies *copies, struct cld_segment *segment, size_t at,
                                  bool is_reserved, struct cld_segment **before) {
    while (segment->end <= at) {
        *before = segment;
        segment = segment->next;
    }
    if (segment->begin == at)
        return segment;
    struct cld_segment *rest = is_reserved ? take_spare() : malloc(sizeof *rest);
    if (!rest)
        return NULL;
    *rest = *segment;
    rest->begin = at;
    segment->end = at;
    segment->next = rest;
    copies->segment_count++;
    *before = segment;
    return rest;
}

/* Where a search for what begins there may begin: before it, so that its neighbour is found, too. */
static struct cld_segment *search_from(const struct cld_copies *copies, size_t begin) {
    struct cld_segment *near = copies->near;
    return near && near->begin < begin ? near : copies->segments;
}

static struct cld_segment *segments_in(struct cld_copies *copies, size_t begin, size_t end,
                                       bool is_reserved) {
    struct cld_segment *from = search_from(copies, begin), *before = from, *unused = NULL;
    struct cld_segment *first = cut_at(copies, from, begin, is_reserved, &before);
    copies->near = before;
    bool is_cut = first && (end == copies->mem->size || cut_at(copies, first, end, is_reserved, &unused));
    return is_cut ? first : NULL;
}

struct cld_segment *cld_segments_in(struct cld_copies *copies, size_t begin, size_t end) {
    return segments_in(copies, begin, end, false);
}

struct cld_segment *cld_segments_of(struct cld_copies *copies, size_t begin, size_t end) {
    return segments_in(copies, begin, end, true);
}

/* Segments that something is under way for stay as they are: it ends with the range that it began with. */
static bool is_one_with_next(const struct cld_segment *segment) {
    const struct cld_segment *next = segment->next;
    return next && next->is_here == segment->is_here && !segment->users && !next->users && !segment->coming &&
           !next->coming && cld_sets_are_equal(&next->valid, &segment->valid);
}

void cld_segments_join(struct cld_copies *copies, struct cld_bytes_range range) {
    struct cld_segment *segment = search_from(copies, range.begin);
    for (; segment && segment->begin <= range.end; segment = segment->next)
        while (is_one_with_next(segment)) {
            struct cld_segment *next = segment->next;
            if (copies->near == next)
                copies->near = segment;
            segment->end = next->end;
            segment->next = next->next;
            copies->segment_count--;
            free(next);
        }
}
