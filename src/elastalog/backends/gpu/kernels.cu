/* All that runs on a device, as one module, compiled before it is needed (see `driver`). Every parameter is a number or an
   address of eight bytes, so that a launch is one row of such words; columns and parts of keys come last, by value. */

typedef long long Word;
typedef unsigned long long Count;

#define THREADS 256
#define WARPS (THREADS / 32)
#define ITEMS 16                /* of a thread, where a block takes a tile at a time */
#define TILE (THREADS * ITEMS)
#define DIGITS 256
#define SMALL 2048              /* keys that one block sorts by itself */
#define EVERY 0xffffffffu
#define MOST 16                 /* columns, or parts of keys, of a launch */

/* The elements of arrays. FIRST: whether a sorted 64-bit number differs from the one before. */
enum { BOOL, INT32, INT64, FIRST };

/* --- searching ------------------------------------------------------------------------------------------------- */

/* How many of the sorted numbers between two positions are less than one. */
__device__ __forceinline__ Word before(const Word* sorted, Word low, Word high, Word number)
{
    while (low < high) {
        Word middle = (low + high) >> 1;
        if (sorted[middle] < number) low = middle + 1; else high = middle;
    }
    return low;
}

/* The same, where the answer is likely to be near `low`. */
__device__ __forceinline__ Word soon_before(const Word* sorted, Word low, Word high, Word number)
{
    Word step = 1;
    while (low + step < high && sorted[low + step] < number) { low += step; step <<= 1; }
    return before(sorted, low, low + step < high ? low + step : high, number);
}

__device__ __forceinline__ bool is_among(const Word* sorted, Word size, Word number)
{
    Word at = before(sorted, 0, size, number);
    return at < size && sorted[at] == number;
}

/* --- keys and their columns -------------------------------------------------------------------------------------- */

/* A column of words, `step` apart, and its place in a key. */
struct Column { int* words; Word step, add, shift, mask; const Word* keys; };
struct Columns { Word number; Column at[MOST]; };

__device__ __forceinline__ Word packed(const Columns& columns, Word row)
{
    Word key = 0;
    for (Word n = 0; n < columns.number; n++) {
        const Column& column = columns.at[n];
        key |= ((Word) column.words[row * column.step] + column.add) << column.shift;
    }
    return key;
}

#define ROW (blockIdx.x * (Word) blockDim.x + threadIdx.x)

extern "C" __global__ void pack(Word* keys, Word size, Columns columns)
{
    Word row = ROW;
    if (row < size) keys[row] = packed(columns, row);
}

extern "C" __global__ void unpack(Word size, Columns columns)
{
    Word row = ROW;
    if (row >= size) return;
    for (Word n = 0; n < columns.number; n++) {
        const Column& column = columns.at[n];
        column.words[row * column.step] = (int) (((column.keys[row] >> column.shift) & column.mask) + column.add);
    }
}

/* Which rows are among sorted keys. */
extern "C" __global__ void hold(const Word* keys, Word number, bool* is_held, Word size, Columns columns)
{
    Word row = ROW;
    if (row < size) is_held[row] = is_among(keys, number, packed(columns, row));
}

/* Where the keys begin that begin like a row, and how many they are; `rest` is what other columns add at most. */
extern "C" __global__ void range(
    const Word* keys, Word number, Word rest, Word* starts, Word* counts, Word size, Columns columns)
{
    Word row = ROW;
    if (row >= size) return;
    Word key = packed(columns, row), start = before(keys, 0, number, key);
    starts[row] = start;
    counts[row] = soon_before(keys, start, number, key + rest + 1) - start;
}

struct Part { const Word *sorted, *wanted; };
struct Parts { Word number; Part at[MOST]; };

/* How many sorted keys of several parts stand before each wanted one; equal ones, too, if it is after them. */
extern "C" __global__ void search(Word number, Word is_after, Word* places, Word size, Parts parts)
{
    Word row = ROW;
    if (row >= size) return;
    Word low = 0, high = number;
    while (low < high) {
        Word middle = (low + high) >> 1;
        bool is_less = is_after != 0;
        for (Word n = parts.number - 1; n >= 0; n--) {
            Word one = parts.at[n].sorted[middle], other = parts.at[n].wanted[row];
            is_less = one < other || (one == other && is_less);
        }
        if (is_less) low = middle + 1; else high = middle;
    }
    places[row] = low;
}

/* Puts every key after as many of its own as stand before it, and as many of the others as are less: for the keys of a
   block they lie between those of its first and its last. */
extern "C" __global__ void merge(const Word* keys, Word size, const Word* others, Word number, Word* merged)
{
    __shared__ Word first, last;
    Word tile = blockDim.x * (Word) 8, at = blockIdx.x * tile, end = at + tile < size ? at + tile : size;
    if (threadIdx.x == 0) first = before(others, 0, number, keys[at]);
    if (threadIdx.x == 32) last = before(others, 0, number, keys[end - 1]);
    __syncthreads();
    for (Word own = at + threadIdx.x; own < end; own += blockDim.x) {
        Word key = keys[own];
        merged[own + before(others, first, last, key)] = key;
    }
}

/* --- joins --------------------------------------------------------------------------------------------------------- */

/* Left row `i` with `counts[i]` facts from the position `starts[i]` on; `ends` are the running sums of `counts`. */
#define PAIRS const Word* starts, const Word* counts, const Word* ends, Word lefts, const Word* facts, Word begin, Word size

/* Pairs are in the order of left rows: those of a block lie between the rows of its first and last pair. */
#define FIND_ROWS \
    __shared__ Word first, last; \
    Word at = blockIdx.x * (Word) blockDim.x, thread = at + threadIdx.x; \
    if (threadIdx.x == 0) first = before(ends, 0, lefts, begin + at + 1); \
    if (threadIdx.x == 32) { \
        Word most = at + blockDim.x - 1; \
        last = before(ends, 0, lefts, begin + (most < size ? most : size - 1) + 1); \
    } \
    __syncthreads();

#define FIND_PAIR \
    Word wanted = begin + thread, left = before(ends, first, last, wanted + 1); \
    Word fact = facts[starts[left] + (wanted - (ends[left] - counts[left]))];

/* Where a word comes from: the column of a left row, or the key of a fact. */
struct Origin { const int* row; Word step, origin, mask, add, shift; int* out; };
struct Origins { Word number; Origin at[MOST]; };

__device__ __forceinline__ Word taken(const Origin& origin, Word left, Word fact)
{
    return (origin.row ? (Word) origin.row[left * origin.step] : (fact >> origin.origin) & origin.mask) + origin.add;
}

extern "C" __global__ void pair_columns(PAIRS, Origins origins)
{
    FIND_ROWS
    if (thread >= size) return;
    FIND_PAIR
    for (Word n = 0; n < origins.number; n++) origins.at[n].out[thread] = (int) taken(origins.at[n], left, fact);
}

/* The keys of heads that are in neither of two sorted sets, in any order. A block asks once for room for all of its. */
extern "C" __global__ void pair_heads(
    PAIRS, const Word* many, Word number, const Word* few, Word fewer, Count* total, Word* keys, Origins origins)
{
    __shared__ unsigned int found;
    __shared__ Count room;
    if (threadIdx.x == 0) found = 0;
    FIND_ROWS
    Word key = 0;
    unsigned int place = 0;
    bool is_new = false;
    if (thread < size) {
        FIND_PAIR
        for (Word n = 0; n < origins.number; n++)
            key |= taken(origins.at[n], left, fact) << origins.at[n].shift;
        is_new = !is_among(many, number, key) && !is_among(few, fewer, key);
        if (is_new) place = atomicAdd(&found, 1u);
    }
    __syncthreads();
    if (threadIdx.x == 0) room = atomicAdd(total, (Count) found);
    __syncthreads();
    if (is_new) keys[room + place] = key;
}

/* --- running sums, and what is chosen by them ---------------------------------------------------------------------- */

__device__ __forceinline__ Word element(const void* array, Word kind, Word at)
{
    switch (kind) {
        case BOOL: return ((const bool*) array)[at];
        case INT32: return ((const int*) array)[at];
        case INT64: return ((const Word*) array)[at];
        default: return at == 0 || ((const Word*) array)[at] != ((const Word*) array)[at - 1];
    }
}

/* The sum of the numbers of this thread and of those before it in the block; `total`: of all. */
__device__ __forceinline__ Word block_sum(Word number, Word* total)
{
    __shared__ Word sums[32];
    unsigned int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    for (int step = 1; step < 32; step <<= 1) {
        Word other = __shfl_up_sync(EVERY, number, step);
        if (lane >= step) number += other;
    }
    if (lane == 31) sums[warp] = number;
    __syncthreads();
    Word all = 0, earlier = 0;
    for (unsigned int n = 0; n < warps; n++) {
        if (n == warp) earlier = all;
        all += sums[n];
    }
    __syncthreads();
    *total = all;
    return number + earlier;
}

extern "C" __global__ void tile_sums(const void* array, Word kind, Word size, Word* sums)
{
    Word begin = blockIdx.x * (Word) TILE, sum = 0, total;
    for (int item = 0; item < ITEMS; item++) {
        Word at = begin + item * THREADS + threadIdx.x;
        if (at < size) sum += element(array, kind, at);
    }
    block_sum(sum, &total);
    if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

/* By one block: each sum becomes that of all before it, and one after the last that of all. */
extern "C" __global__ void sums_before(Word* sums, Word number)
{
    Word carried = 0;
    for (Word begin = 0; begin < number; begin += blockDim.x) {
        Word at = begin + threadIdx.x, own = at < number ? sums[at] : 0, total;
        Word until = block_sum(own, &total);
        if (at < number) sums[at] = carried + until - own;
        carried += total;
    }
    if (threadIdx.x == 0) sums[number] = carried;
}

/* Sums until each element; or (`out` is 0) the positions of those that are not 0, with their keys if these are given. */
extern "C" __global__ void sums_until(
    const void* array, Word kind, Word size, const Word* sums, Word* out, Word* positions, Word* keys)
{
    Word begin = blockIdx.x * (Word) TILE, carried = sums[blockIdx.x];
    for (int item = 0; item < ITEMS; item++) {
        Word at = begin + item * THREADS + threadIdx.x, own = at < size ? element(array, kind, at) : 0, total;
        Word until = carried + block_sum(own, &total);
        carried += total;
        if (at >= size) continue;
        if (out) out[at] = until;
        else if (own) {
            positions[until - 1] = at;
            if (keys) keys[until - 1] = ((const Word*) array)[at];
        }
        if (keys && at == size - 1) positions[until] = size;
    }
}

/* --- sorting ------------------------------------------------------------------------------------------------------- */

/* Few keys in one block: by a bitonic network. */
extern "C" __global__ void sort_few(const Word* keys, Word size, Word* sorted)
{
    __shared__ Word held[SMALL];
    Word width = 2;
    while (width < size) width <<= 1;
    for (Word at = threadIdx.x; at < width; at += blockDim.x) held[at] = at < size ? keys[at] : 0x7fffffffffffffffLL;
    __syncthreads();
    for (Word run = 2; run <= width; run <<= 1)
        for (Word apart = run >> 1; apart; apart >>= 1) {
            for (Word pair = threadIdx.x; pair < width >> 1; pair += blockDim.x) {
                Word low = 2 * pair - (pair & (apart - 1)), high = low + apart;
                Word one = held[low], other = held[high];
                if ((one > other) == ((low & run) == 0)) { held[low] = other; held[high] = one; }
            }
            __syncthreads();
        }
    for (Word at = threadIdx.x; at < size; at += blockDim.x) sorted[at] = held[at];
}

/* How often each digit occurs in each tile, digit by digit. */
extern "C" __global__ void count_digits(const Word* keys, Word size, Word shift, Word* counts)
{
    __shared__ unsigned int held[DIGITS];
    held[threadIdx.x] = 0;
    __syncthreads();
    Word begin = blockIdx.x * (Word) TILE;
    for (int item = 0; item < ITEMS; item++) {
        Word at = begin + item * THREADS + threadIdx.x;
        if (at < size) atomicAdd(&held[(keys[at] >> shift) & (DIGITS - 1)], 1u);
    }
    __syncthreads();
    counts[threadIdx.x * (Word) gridDim.x + blockIdx.x] = held[threadIdx.x];
}

/* Puts keys, and values with them, in the order of one digit; those with the same digit stay in theirs. `until` are the
   running sums of the counts of digits. In the tile first: neighbours then go to neighbouring places. */
extern "C" __global__ void sort_digits(
    const Word* keys, const Word* values, Word size, Word shift, const Word* until, Word* sorted, Word* sorted_values)
{
    __shared__ unsigned int counts[WARPS][DIGITS];
    __shared__ Word staged[TILE];
    __shared__ Word bases[DIGITS];
    unsigned int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    Word begin = blockIdx.x * (Word) TILE, own = begin + warp * (32 * ITEMS) + lane;
    for (unsigned int at = threadIdx.x; at < WARPS * DIGITS; at += THREADS) (&counts[0][0])[at] = 0;
    __syncthreads();
    Word held[ITEMS];
    unsigned int places[ITEMS];
    for (int item = 0; item < ITEMS; item++) {
        Word at = own + item * 32;
        bool is_there = at < size;
        held[item] = is_there ? keys[at] : 0;
        unsigned int digit = is_there ? (unsigned int) (held[item] >> shift) & (DIGITS - 1) : DIGITS;
        unsigned int alike = __match_any_sync(EVERY, digit);
        unsigned int earlier = __popc(alike & ((1u << lane) - 1));
        places[item] = is_there ? counts[warp][digit] + earlier : 0;
        __syncwarp();
        if (is_there && earlier == 0) counts[warp][digit] += __popc(alike);
        __syncwarp();
    }
    __syncthreads();
    unsigned int sum = 0;
    for (int other = 0; other < WARPS; other++) {
        unsigned int there = counts[other][threadIdx.x];
        counts[other][threadIdx.x] = sum;
        sum += there;
    }
    Word total;
    Word start = block_sum(sum, &total) - sum, place = threadIdx.x * (Word) gridDim.x + blockIdx.x;
    for (int other = 0; other < WARPS; other++) counts[other][threadIdx.x] += (unsigned int) start;
    bases[threadIdx.x] = (place ? until[place - 1] : 0) - start;
    __syncthreads();
    for (int item = 0; item < ITEMS; item++) {
        if (own + item * 32 >= size) continue;
        places[item] += counts[warp][(held[item] >> shift) & (DIGITS - 1)];
        staged[places[item]] = held[item];
    }
    __syncthreads();
    for (int item = 0; item < ITEMS; item++) {
        Word at = item * THREADS + threadIdx.x;
        if (at >= total) continue;
        held[item] = bases[(staged[at] >> shift) & (DIGITS - 1)] + at;  /* where it goes: for its value, too */
        sorted[held[item]] = staged[at];
    }
    if (!values) return;
    __syncthreads();
    for (int item = 0; item < ITEMS; item++)
        if (own + item * 32 < size) staged[places[item]] = values[own + item * 32];
    __syncthreads();
    for (int item = 0; item < ITEMS; item++) {
        Word at = item * THREADS + threadIdx.x;
        if (at < total) sorted_values[held[item]] = staged[at];
    }
}

/* --- anything else, element by element ----------------------------------------------------------------------------- */

enum { COPY, ADD, SUBTRACT, MULTIPLY, OR, AND, XOR, LEFT, RIGHT, EQUAL, OTHER, LESS, AT_MOST, MORE, AT_LEAST, LEAST };

__device__ __forceinline__ void put(void* array, Word kind, Word at, Word number)
{
    switch (kind) {
        case BOOL: ((bool*) array)[at] = number != 0; break;
        case INT32: ((int*) array)[at] = (int) number; break;
        default: ((Word*) array)[at] = number;
    }
}

/* Of two arrays, elements `step` apart, or numbers (at no address). */
extern "C" __global__ void combine(
    Word operation, const void* left, Word left_kind, Word left_step, Word left_number, const void* right,
    Word right_kind, Word right_step, Word right_number, void* out, Word out_kind, Word size)
{
    Word row = ROW;
    if (row >= size) return;
    Word one = left ? element(left, left_kind, row * left_step) : left_number;
    Word other = right ? element(right, right_kind, row * right_step) : right_number, made;
    switch (operation) {
        case ADD: made = one + other; break;
        case SUBTRACT: made = one - other; break;
        case MULTIPLY: made = one * other; break;
        case OR: made = one | other; break;
        case AND: made = one & other; break;
        case XOR: made = one ^ other; break;
        case LEFT: made = one << other; break;
        case RIGHT: made = one >> other; break;
        case EQUAL: made = one == other; break;
        case OTHER: made = one != other; break;
        case LESS: made = one < other; break;
        case AT_MOST: made = one <= other; break;
        case MORE: made = one > other; break;
        case AT_LEAST: made = one >= other; break;
        case LEAST: made = one < other ? one : other; break;
        default: made = one;
    }
    put(out, out_kind, row, made);
}

/* The numbers from one on. */
extern "C" __global__ void count_from(Word first, Word* out, Word size)
{
    Word row = ROW;
    if (row < size) out[row] = first + row;
}

/* The elements at some positions; or puts elements there. */
extern "C" __global__ void gather(const void* array, Word kind, Word step, const Word* places, void* out, Word size)
{
    Word row = ROW;
    if (row < size) put(out, kind, row, element(array, kind, places[row] * step));
}

extern "C" __global__ void scatter(const void* array, Word kind, const Word* places, void* out, Word size)
{
    Word row = ROW;
    if (row < size) put(out, kind, places[row], element(array, kind, row));
}

/* The least and the greatest element, into numbers that are the greatest and the least there are. */
extern "C" __global__ void extremes(const void* array, Word kind, Word step, Word* found, Word size)
{
    __shared__ Word least, most;
    if (threadIdx.x == 0) { least = found[0]; most = found[1]; }
    __syncthreads();
    for (Word row = ROW; row < size; row += gridDim.x * (Word) blockDim.x) {
        Word number = element(array, kind, row * step);
        if (number < least) atomicMin(&least, number);
        if (number > most) atomicMax(&most, number);
    }
    __syncthreads();
    if (threadIdx.x == 0) { atomicMin(&found[0], least); atomicMax(&found[1], most); }
}
