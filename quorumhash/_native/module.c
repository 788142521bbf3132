/* The door from Python: buffers in and out, no NumPy headers, the stable ABI of 3.11, the GIL given up while working.
 *
 * The caller (kernels.py) has checked values; here only lengths and types are checked, so that no call can read past a buffer.
 */
#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#include <Python.h>

#include "hamming.h"

#include <stdlib.h>
#include <string.h>

typedef struct { /* what a call borrows */
    Py_buffer *buffers;
    size_t n_buffers, capacity;
    qh_segment *segments;
    qh_bands *bands;
    qh_search search;
} call;

static char nothing; /* an empty buffer may have no address */

static Py_buffer *open_buffer(call *given, PyObject *object, int flags)
{
    if (given->n_buffers == given->capacity) {
        const size_t capacity = given->capacity ? 2 * given->capacity : 32;
        Py_buffer *larger = realloc(given->buffers, capacity * sizeof *larger);
        if (!larger) {
            PyErr_NoMemory();
            return NULL;
        }
        given->buffers = larger;
        given->capacity = capacity;
    }
    if (PyObject_GetBuffer(object, &given->buffers[given->n_buffers], flags)) return NULL;
    return &given->buffers[given->n_buffers++];
}

static void *borrow(call *given, PyObject *object, size_t n_bytes, int is_written, const char *what)
{
    const Py_buffer *buffer = open_buffer(given, object, is_written ? PyBUF_WRITABLE : PyBUF_SIMPLE);
    if (!buffer) return NULL;
    if ((size_t)buffer->len < n_bytes) {
        PyErr_Format(PyExc_ValueError, "%s must have %zu bytes, got %zd.", what, n_bytes, buffer->len);
        return NULL;
    }
    return buffer->buf ? buffer->buf : &nothing;
}

/* A matrix of float ("f") or double ("d"), row after row, of the shape of the call's first one. */
static void *borrow_matrix(call *given, PyObject *object, const char *format, int is_written, const char *what)
{
    const int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (is_written ? PyBUF_WRITABLE : 0);
    const Py_buffer *matrix = open_buffer(given, object, flags), *first = given->buffers;
    if (!matrix) return NULL;
    if (matrix->ndim != 2 || strcmp(matrix->format, format) || matrix->shape[0] != first->shape[0] ||
        matrix->shape[1] != first->shape[1]) {
        PyErr_Format(PyExc_ValueError, "%s must be a matrix of type '%s' and of one shape with Khat.", what, format);
        return NULL;
    }
    return matrix->buf ? matrix->buf : &nothing;
}

static void give_back(call *given)
{
    for (size_t i = 0; i < given->n_buffers; i++) PyBuffer_Release(&given->buffers[i]);
    free(given->buffers);
    free(given->segments);
    free(given->bands);
}

static int read_bands(call *given, PyObject *tuple, size_t n_rows, qh_bands *bands)
{
    PyObject *list;
    Py_ssize_t n_words;
    if (!PyArg_ParseTuple(tuple, "nO", &n_words, &list)) return -1;
    const Py_ssize_t n_bands = PySequence_Size(list);
    if (n_bands < 1 || n_bands > QH_MAX_BANDS || n_words < 1 || n_words > QH_MAX_BYTES / 8) {
        PyErr_SetString(PyExc_ValueError, "bands must be 1 to 128, of 1 to 16 words.");
        return -1;
    }
    bands->n_bands = (size_t)n_bands;
    bands->n_words = (size_t)n_words;
    for (Py_ssize_t b = 0; b < n_bands; b++) {
        PyObject *band = PySequence_GetItem(list, b), *offsets, *rows, *codes;
        unsigned start, width;
        const int is_read = band && PyArg_ParseTuple(band, "IIOOO", &start, &width, &offsets, &rows, &codes);
        Py_XDECREF(band); /* the list keeps it */
        if (!is_read) return -1;
        if (width < 1 || width > 30 || start + width > 64 * (size_t)n_words) {
            PyErr_SetString(PyExc_ValueError, "a band must have 1 to 30 of the code's bits.");
            return -1;
        }
        bands->start[b] = start;
        bands->width[b] = width;
        bands->offsets[b] = borrow(given, offsets, (((size_t)1 << width) + 1) * 4, 0, "offsets of a band");
        if (!bands->offsets[b]) return -1;
        bands->rows[b] = borrow(given, rows, n_rows * 4, 0, "rows of a band");
        if (!bands->rows[b]) return -1;
        bands->codes[b] = borrow(given, codes, n_rows * (size_t)n_words * 8, 0, "codes of a band");
        if (!bands->codes[b]) return -1;
    }
    return 0;
}

static int read_segment(call *given, PyObject *tuple, qh_segment *segment, qh_bands *bands)
{
    PyObject *tiles, *offsets, *ids, *allowed, *of_bands;
    Py_ssize_t n_rows, n_items;
    long long first_id;
    if (!PyArg_ParseTuple(tuple, "nnOOOOOL", &n_rows, &n_items, &tiles, &offsets, &ids, &allowed, &of_bands, &first_id))
        return -1;
    const size_t n_tiles = ((size_t)n_rows + QH_TILE - 1) / QH_TILE;
    segment->n_rows = (size_t)n_rows;
    segment->tiles = borrow(given, tiles, n_tiles * QH_TILE * given->search.n_bytes, 0, "tiles");
    if (!segment->tiles) return -1;
    if (offsets != Py_None) {
        segment->offsets = borrow(given, offsets, ((size_t)n_rows + 1) * 4, 0, "offsets");
        if (!segment->offsets) return -1;
    }
    segment->first_id = (int64_t)first_id;
    if (ids != Py_None) {
        segment->ids = borrow(given, ids, (size_t)n_items * 8, 0, "ids");
        if (!segment->ids) return -1;
    }
    if ((size_t)n_items < (segment->offsets ? segment->offsets[n_rows] : (size_t)n_rows)) {
        PyErr_SetString(PyExc_ValueError, "a segment must have an id for every item.");
        return -1;
    }
    if (allowed != Py_None) {
        segment->allowed = borrow(given, allowed, (size_t)n_items, 0, "allowed");
        if (!segment->allowed) return -1;
    }
    if (of_bands != Py_None) {
        if (read_bands(given, of_bands, (size_t)n_rows, bands)) return -1;
        segment->bands = bands;
    }
    return 0;
}

static const qh_kernel *kernel_named(const char *name) /* NULL: not here */
{
    const qh_kernel *found[4];
    const size_t n_found = qh_kernels(found);
    for (size_t i = 0; i < n_found; i++)
        if (!strcmp(found[i]->name, name)) return found[i];
    return NULL;
}

static int read_search(call *given, PyObject *tuple)
{
    const char *name;
    PyObject *list;
    Py_ssize_t n_bits, stage;
    double scan_cost, look_up_cost, candidate_cost;
    if (!PyArg_ParseTuple(tuple, "snOn(ddd)", &name, &n_bits, &list, &stage, &scan_cost, &look_up_cost, &candidate_cost))
        return -1;
    qh_search *search = &given->search;
    search->kernel = kernel_named(name);
    const Py_ssize_t n_segments = PySequence_Size(list);
    if (!search->kernel || n_bits < 1 || n_bits > 8 * QH_MAX_BYTES || stage < 0 || n_segments < 0 || n_segments > 65535) {
        PyErr_SetString(PyExc_ValueError, "no such kernel here, or n_bits not from 1 to 1024.");
        return -1;
    }
    search->n_bits = (size_t)n_bits;
    search->n_bytes = ((size_t)n_bits + 7) / 8;
    search->stage = (size_t)stage;
    search->scan_cost = scan_cost;
    search->look_up_cost = look_up_cost;
    search->candidate_cost = candidate_cost;
    search->n_segments = (size_t)n_segments;
    given->segments = calloc(search->n_segments + 1, sizeof *given->segments);
    given->bands = calloc(search->n_segments + 1, sizeof *given->bands);
    if (!given->segments || !given->bands) {
        PyErr_NoMemory();
        return -1;
    }
    search->segments = given->segments;
    for (Py_ssize_t s = 0; s < n_segments; s++) {
        PyObject *segment = PySequence_GetItem(list, s);
        const int problem = segment ? read_segment(given, segment, &given->segments[s], &given->bands[s]) : -1;
        Py_XDECREF(segment); /* the list keeps it */
        if (problem) return -1;
    }
    return 0;
}

static PyObject *answer(const call *given, int problem)
{
    if (problem == QH_NO_MEMORY) return PyErr_NoMemory();
    if (problem) {
        PyErr_SetString(PyExc_RuntimeError, "fewer items than n_neighbors.");
        return NULL;
    }
    return Py_BuildValue("nn", (Py_ssize_t)given->search.n_scanned, (Py_ssize_t)given->search.n_looked_up);
}

/* nearest(search, queries, n_queries, k, ids, distances) -> (scanned, looked up) */
static PyObject *nearest(PyObject *self, PyObject *args)
{
    call given = {0};
    PyObject *search, *of_queries, *of_ids, *of_distances, *result = NULL;
    Py_ssize_t n_queries, k;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOnnOO", &search, &of_queries, &n_queries, &k, &of_ids, &of_distances)) return NULL;
    if (!read_search(&given, search)) {
        const size_t n = (size_t)n_queries * (size_t)k;
        const uint8_t *queries = borrow(&given, of_queries, (size_t)n_queries * given.search.n_bytes, 0, "queries");
        int64_t *ids = queries ? borrow(&given, of_ids, n * 8, 1, "ids") : NULL;
        uint16_t *distances = ids ? borrow(&given, of_distances, n * 2, 1, "distances") : NULL;
        if (distances) {
            int problem;
            Py_BEGIN_ALLOW_THREADS
            problem = k ? qh_nearest(&given.search, queries, (size_t)n_queries, (size_t)k, ids, distances) : QH_OK;
            Py_END_ALLOW_THREADS
            result = answer(&given, problem);
        }
    }
    give_back(&given);
    return result;
}

/* ranked(search, queries, tables, n_queries, k, ids, costs, distances) -> (scanned, looked up) */
static PyObject *rank(PyObject *self, PyObject *args)
{
    call given = {0};
    PyObject *search, *of_queries, *of_tables, *of_ids, *of_costs, *of_distances, *result = NULL;
    Py_ssize_t n_queries, k;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOnnOOO", &search, &of_queries, &of_tables, &n_queries, &k, &of_ids, &of_costs,
                          &of_distances))
        return NULL;
    if (!read_search(&given, search)) {
        const size_t n = (size_t)n_queries * (size_t)k;
        const size_t n_bytes = (size_t)n_queries * given.search.n_bytes;
        const uint8_t *queries = borrow(&given, of_queries, n_bytes, 0, "queries");
        const double *tables = queries ? borrow(&given, of_tables, n_bytes * 2048, 0, "tables") : NULL;
        int64_t *ids = tables ? borrow(&given, of_ids, n * 8, 1, "ids") : NULL;
        double *costs = ids ? borrow(&given, of_costs, n * 8, 1, "costs") : NULL;
        uint16_t *distances = costs ? borrow(&given, of_distances, n * 2, 1, "distances") : NULL;
        if (distances) {
            int problem;
            Py_BEGIN_ALLOW_THREADS
            problem = k ? qh_ranked(&given.search, queries, tables, (size_t)n_queries, (size_t)k, ids, costs,
                                   distances)
                       : QH_OK;
            Py_END_ALLOW_THREADS
            result = answer(&given, problem);
        }
    }
    give_back(&given);
    return result;
}

/* within(search, queries, n_queries, radius, offsets) -> (ids, distances, scanned, looked up) */
static PyObject *within(PyObject *self, PyObject *args)
{
    call given = {0};
    PyObject *search, *of_queries, *of_offsets, *result = NULL;
    Py_ssize_t n_queries;
    unsigned radius;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOnIO", &search, &of_queries, &n_queries, &radius, &of_offsets)) return NULL;
    if (!read_search(&given, search)) {
        const uint8_t *queries = borrow(&given, of_queries, (size_t)n_queries * given.search.n_bytes, 0, "queries");
        int64_t *offsets = queries ? borrow(&given, of_offsets, ((size_t)n_queries + 1) * 8, 1, "offsets") : NULL;
        if (offsets) {
            qh_found found = {0};
            int problem;
            radius = radius < given.search.n_bits ? radius : (unsigned)given.search.n_bits;
            Py_BEGIN_ALLOW_THREADS
            problem = qh_within(&given.search, queries, (size_t)n_queries, radius, offsets, &found);
            Py_END_ALLOW_THREADS
            if (problem) {
                result = PyErr_NoMemory();
            } else {
                PyObject *ids = PyByteArray_FromStringAndSize((char *)found.ids, (Py_ssize_t)(found.n * 8));
                PyObject *distances = PyByteArray_FromStringAndSize((char *)found.distances, (Py_ssize_t)(found.n * 2));
                if (ids && distances)
                    result = Py_BuildValue("OOnn", ids, distances, (Py_ssize_t)given.search.n_scanned,
                                           (Py_ssize_t)given.search.n_looked_up);
                Py_XDECREF(ids);
                Py_XDECREF(distances);
            }
            free(found.ids);
            free(found.distances);
        }
    }
    give_back(&given);
    return result;
}

/* fill_band(words, n_rows, n_words, start, width, offsets, rows, codes or None) */
static PyObject *fill_band(PyObject *self, PyObject *args)
{
    call given = {0};
    PyObject *of_words, *of_offsets, *of_rows, *of_codes, *result = NULL;
    Py_ssize_t n_rows, n_words;
    unsigned start, width;
    (void)self;
    if (!PyArg_ParseTuple(args, "OnnIIOOO", &of_words, &n_rows, &n_words, &start, &width, &of_offsets, &of_rows,
                          &of_codes))
        return NULL;
    if (n_words < 1 || width < 1 || width > 30 || start + width > 64 * (size_t)n_words) {
        PyErr_SetString(PyExc_ValueError, "a band must have 1 to 30 of the code's bits.");
        return NULL;
    }
    const uint64_t *words = borrow(&given, of_words, (size_t)n_rows * (size_t)n_words * 8, 0, "words");
    uint32_t *offsets = words ? borrow(&given, of_offsets, (((size_t)1 << width) + 1) * 4, 1, "offsets") : NULL;
    uint32_t *rows = offsets ? borrow(&given, of_rows, (size_t)n_rows * 4, 1, "rows") : NULL;
    uint64_t *codes = rows && of_codes != Py_None ? borrow(&given, of_codes, (size_t)n_rows * 8, 1, "codes") : NULL;
    if (rows && (codes || of_codes == Py_None)) {
        Py_BEGIN_ALLOW_THREADS
        qh_fill_band(words, (size_t)n_rows, (size_t)n_words, start, width, offsets, rows, codes);
        Py_END_ALLOW_THREADS
        Py_INCREF(Py_None);
        result = Py_None;
    }
    give_back(&given);
    return result;
}

static int read_voices(call *given, PyObject *of_duals, PyObject *of_views, qh_sweep *sweep)
{
    for (size_t m = 0; m < sweep->n_views; m++) {
        PyObject *dual = PySequence_GetItem(of_duals, (Py_ssize_t)m), *view = PySequence_GetItem(of_views, (Py_ssize_t)m);
        sweep->duals[m] = dual && view ? borrow_matrix(given, dual, "d", 1, "a dual") : NULL;
        sweep->views[m] = sweep->duals[m] ? borrow_matrix(given, view, sweep->is_single ? "f" : "d", 0, "a view") : NULL;
        Py_XDECREF(dual); /* a buffer keeps what it is of */
        Py_XDECREF(view);
        if (!sweep->views[m]) return -1;
    }
    return 0;
}

/* sweep(kernel, by_rows, is_single, (threshold, share, scale), Khat, shown, low_rank, pulled or None, duals, views)
 * -> (residual, error), Khat, shown and duals in place */
static PyObject *sweep(PyObject *self, PyObject *args)
{
    call given = {0};
    qh_sweep work = {0};
    const char *name;
    PyObject *of_kernel, *of_shown, *of_low_rank, *of_pulled, *of_duals, *of_views, *result = NULL;
    (void)self;
    if (!PyArg_ParseTuple(args, "spp(ddd)OOOOOO", &name, &work.by_rows, &work.is_single, &work.threshold, &work.share,
                          &work.scale, &of_kernel, &of_shown, &of_low_rank, &of_pulled, &of_duals, &of_views))
        return NULL;
    const qh_kernel *kernel = kernel_named(name);
    const Py_ssize_t n_views = PySequence_Size(of_views);
    if (!kernel || n_views < 1 || n_views > 65535 || PySequence_Size(of_duals) != n_views) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "no such kernel here, or not a dual for every view.");
        return NULL;
    }
    work.n_views = (size_t)n_views;
    work.duals = calloc(work.n_views, sizeof *work.duals);
    work.views = calloc(work.n_views, sizeof *work.views);
    if (!work.duals || !work.views) PyErr_NoMemory();
    else if ((work.kernel = borrow_matrix(&given, of_kernel, "d", 1, "Khat")) &&
             (work.shown = borrow_matrix(&given, of_shown, "d", 1, "Khat - dual_0")) &&
             (work.low_rank = borrow_matrix(&given, of_low_rank, "d", 0, "the low rank's moves")) &&
             (of_pulled == Py_None || (work.pulled = borrow_matrix(&given, of_pulled, "d", 0, "the targets' moves"))) &&
             !read_voices(&given, of_duals, of_views, &work)) {
        work.n_rows = (size_t)given.buffers->shape[0];
        work.n_columns = (size_t)given.buffers->shape[1];
        work.room = malloc(qh_sweep_room(work.n_columns, work.n_views) * sizeof *work.room);
        if (work.room) {
            Py_BEGIN_ALLOW_THREADS
            kernel->sweep(&work);
            Py_END_ALLOW_THREADS
            result = Py_BuildValue("dd", work.residual, work.error);
        } else {
            PyErr_NoMemory();
        }
    }
    give_back(&given);
    free(work.duals);
    free(work.views);
    free(work.room);
    return result;
}

/* kernels() -> names of those this processor can run, the fastest first */
static PyObject *kernels(PyObject *self, PyObject *args)
{
    const qh_kernel *found[4];
    const size_t n = qh_kernels(found);
    PyObject *names = PyTuple_New((Py_ssize_t)n);
    (void)self;
    (void)args;
    for (size_t i = 0; names && i < n; i++) {
        PyObject *name = PyUnicode_FromString(found[i]->name);
        if (!name || PyTuple_SetItem(names, (Py_ssize_t)i, name)) {
            Py_DECREF(names);
            return NULL;
        }
    }
    return names;
}

static PyMethodDef methods[] = {
    {"nearest", nearest, METH_VARARGS, "k nearest items of each query."},
    {"ranked", rank, METH_VARARGS, "k cheapest items of each query, by tables of costs."},
    {"within", within, METH_VARARGS, "All items within a radius of each query."},
    {"fill_band", fill_band, METH_VARARGS, "Rows in the order of one band's bits."},
    {"sweep", sweep, METH_VARARGS, "What follows the products of a sweep of the consensus, for some rows."},
    {"kernels", kernels, METH_NOARGS, "Kernels this processor can run, the fastest first."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "_hamming",
    .m_doc = "Exact search among binary codes, and a sweep of the consensus; see kernels.py for the Python side.",
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit__hamming(void) { return PyModuleDef_Init(&definition); }
