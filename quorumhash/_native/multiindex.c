/* Multi-index hashing (Norouzi, Punjani, Fleet 2012): the bits are cut into m bands, and the rows are kept in the order of
 * each band's value, so that all codes that share a band with the query stand together.
 *
 * Step s looks up band s mod m, at all values that differ from the query's in exactly s div m bits. By the pigeonhole
 * principle a code that steps 0 to s did not meet differs in more than s bits: in at least s div m + 1 bits of each band
 * up to s mod m, and in at least s div m of each later one. So the search ends, exactly, once s reaches the limit.
 */
#include "hamming.h"

#include <string.h>

#define MAX_WORDS (QH_MAX_BYTES / 8)
#define AT_ONCE 64           /* values looked up together, so that their cache misses overlap */
#define LINE 8               /* words that memory fetches at once */
#define FEW 6                /* rows under which a call that compares many is not worth it */
#define CHEAP 0.05           /* share of a scan that a step may cost when only a nearer limit is hoped for */

#if defined(QH_X86)
#define QH_POPCOUNT __attribute__((target("popcnt")))
#else
#define QH_POPCOUNT
#endif

#if defined(__GNUC__)
#define N_ONES(x) (has_popcount ? (unsigned)__builtin_popcountll(x) : qh_ones_by_halves(x))
#else
#define N_ONES(x) qh_ones_by_halves(x)
#endif

/* Bits start to start + width of a code, its first bit being the highest of word 0; width <= 32. */
QH_INLINE uint64_t band_value(const uint64_t *words, unsigned start, unsigned width, const int is_one_word)
{
    const uint64_t *word = words + start / 64, all = ((uint64_t)1 << width) - 1;
    const unsigned end = start % 64 + width;
    if (is_one_word || end <= 64) return (*word >> (64 - end)) & all;
    return ((word[0] << (end - 64)) | (word[1] >> (128 - end))) & all;
}

/* The next larger number with as many ones. */
QH_INLINE uint64_t next_with_as_many(uint64_t x)
{
    const uint64_t lowest = x & (~x + 1), moved = x + lowest;
    return moved | ((x ^ moved) >> (2 + qh_lowest(x)));
}

static double n_choices(unsigned n, unsigned of)
{
    double choices = 1;
    if (of > n) return 0;
    for (unsigned i = 0; i < of; i++) choices = choices * (n - i) / (i + 1);
    return choices;
}

typedef struct {
    const qh_search *search;
    size_t number;                /* of the segment */
    const qh_bands *bands;
    uint64_t words[MAX_WORDS];    /* the query */
    qh_selection *selection;
    double occupancy[QH_MAX_BANDS]; /* rows met a look-up, as last seen */
} lookup;

/* Whether an earlier step met this code already. */
QH_INLINE int is_known(const lookup *job, const uint64_t *differing, unsigned band, unsigned n_flips,
                       const int has_popcount, const int is_one_word)
{
    for (unsigned b = 0; b < job->bands->n_bands; b++) {
        const unsigned d = N_ONES(band_value(differing, job->bands->start[b], job->bands->width[b], is_one_word));
        if (d < n_flips || (d == n_flips && b < band)) return 1;
    }
    return 0;
}

/* One row met: a hit, unless it is too far or known. */
QH_INLINE int meet(lookup *job, unsigned band, unsigned n_flips, const uint64_t *code, uint32_t row,
                   const int has_popcount, const int is_one_word)
{
    const size_t n_words = is_one_word ? 1 : job->bands->n_words;
    uint64_t differing[MAX_WORDS];
    unsigned distance = 0;
    for (size_t w = 0; w < n_words; w++) distance += N_ONES(differing[w] = code[w] ^ job->words[w]);
    if (distance > job->selection->limit || is_known(job, differing, band, n_flips, has_popcount, is_one_word))
        return QH_OK;
    return qh_add_hit(job->selection, &job->search->segments[job->number], job->number, row, distance);
}

/* The rows begin to end of a band, which share its value: codes of one word stand side by side. */
QH_INLINE int verify(lookup *job, unsigned band, unsigned n_flips, size_t begin, size_t end, const int has_popcount,
                     const int is_one_word)
{
    const uint32_t *rows = job->bands->rows[band];
    const uint64_t *codes = job->bands->codes[band];
    if (!is_one_word || end - begin < FEW) {
        for (size_t i = begin; i < end; i++) {
            const uint64_t *code = codes + (is_one_word ? i : (size_t)rows[i] * job->bands->n_words);
            if (meet(job, band, n_flips, code, rows[i], has_popcount, is_one_word)) return QH_NO_MEMORY;
        }
        return QH_OK;
    }
    for (size_t first = begin; first < end; first += 64) {
        const size_t n = end - first < 64 ? end - first : 64;
        uint64_t near = job->search->kernel->near_words(codes + first, n, job->words[0], job->selection->limit);
        for (; near; near &= near - 1) {
            const size_t i = first + (size_t)qh_lowest(near);
            if (meet(job, band, n_flips, codes + i, rows[i], has_popcount, is_one_word)) return QH_NO_MEMORY;
        }
    }
    return QH_OK;
}

QH_INLINE int take_step(lookup *job, unsigned band, unsigned n_flips, const int has_popcount, const int is_one_word)
{
    const unsigned width = job->bands->width[band];
    const uint32_t *offsets = job->bands->offsets[band];
    const uint64_t value = band_value(job->words, job->bands->start[band], width, is_one_word);
    const uint64_t end = (uint64_t)1 << width;
    uint64_t flips = ((uint64_t)1 << n_flips) - 1;
    size_t n_met = 0, n_values = 0;
    if (n_flips > width) return QH_OK;
    while (flips < end) {
        uint64_t keys[AT_ONCE];
        size_t n = 0;
        while (n < AT_ONCE && flips < end) {
            keys[n] = value ^ flips;
            QH_PREFETCH(offsets + keys[n++]);
            flips = flips ? next_with_as_many(flips) : end;
        }
        for (size_t i = 0; i < n; i++) {
            const size_t begin = offsets[keys[i]];
            if (is_one_word) {
                QH_PREFETCH(job->bands->codes[band] + begin);
                QH_PREFETCH(job->bands->codes[band] + begin + LINE);
            } else {
                QH_PREFETCH(job->bands->rows[band] + begin);
            }
        }
        for (size_t i = 0; i < n; i++) {
            const size_t begin = offsets[keys[i]], past = offsets[keys[i] + 1];
            n_met += past - begin;
            if (verify(job, band, n_flips, begin, past, has_popcount, is_one_word)) return QH_NO_MEMORY;
        }
        n_values += n;
    }
    job->occupancy[band] = n_values ? (double)n_met / (double)n_values : 0;
    return QH_OK;
}

static double step_cost(const lookup *job, size_t step)
{
    const size_t band = step % job->bands->n_bands, n_flips = step / job->bands->n_bands;
    return n_choices(job->bands->width[band], (unsigned)n_flips) *
           (job->search->look_up_cost + job->search->candidate_cost * job->occupancy[band]);
}

/* Whether to scan instead of taking this step: when the steps up to the limit cost more, unless this one is cheap and
 * may bring the limit nearer. */
static int is_dear(const lookup *job, size_t step)
{
    const double scan = job->search->scan_cost * (double)job->search->segments[job->number].n_rows;
    double cost = 0;
    if (scan < 0) return 0;
    if (job->selection->k != QH_EVERYTHING && step_cost(job, step) <= CHEAP * scan) return 0;
    for (size_t s = step; s <= job->selection->limit && cost <= scan; s++) cost += step_cost(job, s);
    return cost > scan;
}

QH_INLINE int take_steps(lookup *job, const int has_popcount, const int is_one_word)
{
    for (size_t step = 0; step <= job->selection->limit; step++) {
        const unsigned band = (unsigned)(step % job->bands->n_bands), n_flips = (unsigned)(step / job->bands->n_bands);
        if (is_dear(job, step)) {
            qh_forget_hits(job->selection, &job->search->segments[job->number], job->number);
            return 0;
        }
        const int problem = take_step(job, band, n_flips, has_popcount, is_one_word);
        if (problem) return problem;
    }
    return 1;
}

#if defined(__GNUC__)
QH_POPCOUNT static int take_steps_fast(lookup *job)
{
    return job->bands->n_words == 1 ? take_steps(job, 1, 1) : take_steps(job, 1, 0);
}
#else
#define take_steps_fast take_steps_plain
#endif

static int take_steps_plain(lookup *job)
{
    return job->bands->n_words == 1 ? take_steps(job, 0, 1) : take_steps(job, 0, 0);
}

static void read_query(const uint8_t *query, size_t n_bytes, uint64_t *words)
{
    for (size_t j = 0; j < n_bytes; j++) words[j / 8] |= (uint64_t)query[j] << (56 - 8 * (j % 8));
}

/* Have memory fetch what the first look-ups of a later query will read: where its rows begin, then the rows. */
void qh_look_ahead(const qh_search *search, size_t number, const uint8_t *query, int has_offsets)
{
    const qh_bands *bands = search->segments[number].bands;
    uint64_t words[MAX_WORDS] = {0};
    read_query(query, search->n_bytes, words);
    for (size_t b = 0; b < bands->n_bands && b < AT_ONCE; b++) {
        const uint32_t *offset =
            bands->offsets[b] + band_value(words, bands->start[b], bands->width[b], bands->n_words == 1);
        if (has_offsets) {
            QH_PREFETCH(bands->rows[b] + *offset);
            if (bands->n_words == 1) {
                QH_PREFETCH(bands->codes[b] + *offset);
                QH_PREFETCH(bands->codes[b] + *offset + LINE);
            }
        } else {
            QH_PREFETCH(offset);
        }
    }
}

int qh_look_up(const qh_search *search, size_t number, const uint8_t *query, qh_selection *selection)
{
    const qh_segment *segment = &search->segments[number];
    lookup job = {.search = search, .number = number, .bands = segment->bands, .selection = selection};
    read_query(query, search->n_bytes, job.words);
    for (size_t b = 0; b < job.bands->n_bands; b++)
        job.occupancy[b] = (double)segment->n_rows / (double)((uint64_t)1 << job.bands->width[b]);
    return search->kernel->has_popcount ? take_steps_fast(&job) : take_steps_plain(&job);
}

/* Counting sort of the rows by one band; offsets is (2 ** width + 1), codes NULL or (n_rows). */
void qh_fill_band(const uint64_t *words, size_t n_rows, size_t n_words, uint32_t start, uint32_t width,
                  uint32_t *offsets, uint32_t *rows, uint64_t *codes)
{
    const size_t n_values = (size_t)1 << width;
    memset(offsets, 0, (n_values + 1) * sizeof *offsets);
    for (size_t row = 0; row < n_rows; row++) offsets[band_value(words + row * n_words, start, width, n_words == 1) + 1]++;
    for (size_t v = 0; v < n_values; v++) offsets[v + 1] += offsets[v];
    for (size_t row = 0; row < n_rows; row++) { /* offsets[v] moves to the end of v, which is the start of v + 1 */
        const uint32_t place = offsets[band_value(words + row * n_words, start, width, n_words == 1)]++;
        rows[place] = (uint32_t)row;
        if (codes) codes[place] = words[row];
    }
    memmove(offsets + 1, offsets, n_values * sizeof *offsets);
    offsets[0] = 0;
}
