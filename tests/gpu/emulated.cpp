// A driver of CUDA whose device is this processor: enough of its interface for `backends.gpu.driver`, and the functions of
// `kernels.cu`, compiled as C++. The threads of a block are fibers, which change places wherever threads wait for each
// other, in an order that is another one each time.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <csetjmp>
#include <mutex>
#include <string>
#include <tuple>
#include <ucontext.h>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static

struct Index { unsigned int x; };
static Index threadIdx, blockIdx, blockDim, gridDim;

struct Fiber { ucontext_t context; jmp_buf left; std::vector<char> stack; bool is_begun, is_done; int waits; };
static std::vector<Fiber> fibers;
static ucontext_t outside;
static jmp_buf scheduler;
static unsigned int current;
static int64_t exchanged[1024];
enum { NOTHING, WARP, BLOCK };

static void wait(int for_what) {
    Fiber& fiber = fibers[current];
    fiber.waits = for_what;
    if (!_setjmp(fiber.left)) _longjmp(scheduler, 1);
}
static void __syncthreads() { wait(BLOCK); }
static void __syncwarp() { wait(WARP); }
static unsigned int __popc(unsigned int bits) { return __builtin_popcount(bits); }
static long long __shfl_up_sync(unsigned int, long long number, int step) {
    exchanged[threadIdx.x] = number;
    wait(WARP);
    long long found = (threadIdx.x & 31) >= (unsigned) step ? exchanged[threadIdx.x - step] : number;
    wait(WARP);
    return found;
}
static unsigned int __match_any_sync(unsigned int, unsigned int digit) {
    exchanged[threadIdx.x] = digit;
    wait(WARP);
    unsigned int found = 0, first = threadIdx.x & ~31u;
    for (int lane = 0; lane < 32; lane++) if (exchanged[first + lane] == digit) found |= 1u << lane;
    wait(WARP);
    return found;
}
template <class T, class U> T atomicAdd(T* place, U more) { T was = *place; *place += more; return was; }
template <class T> T atomicMin(T* place, T other) { T was = *place; if (other < was) *place = other; return was; }
template <class T> T atomicMax(T* place, T other) { T was = *place; if (other > was) *place = other; return was; }

#include KERNELS

// --- launching ------------------------------------------------------------------------------------------------------

typedef void (*Launcher)(const char*);
static const char* arguments;
static Launcher launched;

template <class... A, size_t... I>
static void called(void (*function)(A...), const char* given, std::index_sequence<I...>) {
    size_t offsets[sizeof...(A) + 1] = {0}, sizes[] = {sizeof(A)...};
    for (size_t n = 0; n < sizeof...(A); n++) offsets[n + 1] = offsets[n] + sizes[n];
    function(*(const std::remove_reference_t<A>*) (given + offsets[I])...);
}
template <class... A> static size_t size_of(void (*)(A...)) { return (sizeof(A) + ... + 0); }
template <class... A> static void call(void (*function)(A...), const char* given) {
    called(function, given, std::index_sequence_for<A...>{});
}

struct Function { Launcher launcher; size_t size; bool waits; };
#define FUNCTION(name, waits) {#name, {[](const char* given) { call(name, given); }, size_of(name), waits}},
static std::map<std::string, Function> functions = { FUNCTIONS };

static void fiber_main() {
    launched(arguments);
    fibers[current].is_done = true;
    _longjmp(scheduler, 1);
}

static void go_on(unsigned int thread) {
    Fiber& fiber = fibers[thread];
    current = thread;
    threadIdx.x = thread;
    if (_setjmp(scheduler)) return;
    if (fiber.is_begun) _longjmp(fiber.left, 1);
    fiber.is_begun = true;
    swapcontext(&outside, &fiber.context);  // once: it asks the system for the mask of signals
}

static std::mutex one_at_a_time;

static bool may_go_on(unsigned int thread, unsigned int threads) {
    Fiber& fiber = fibers[thread];
    if (fiber.is_done) return false;
    if (fiber.waits == NOTHING) return true;
    unsigned int first = fiber.waits == WARP ? thread & ~31u : 0, last = fiber.waits == WARP ? first + 32 : threads;
    for (unsigned int n = first; n < last; n++)
        if (!fibers[n].is_done && fibers[n].waits < fiber.waits) return false;
    return true;
}

static void release(int what, unsigned int first, unsigned int last) {
    for (unsigned int n = first; n < last; n++) if (fibers[n].waits == what) fibers[n].waits = NOTHING;
}

static void run_block(unsigned int threads, bool waiting) {
    static uint64_t seed = 1;
    if (!waiting) {  // nobody waits for anybody
        for (threadIdx.x = 0; threadIdx.x < threads; threadIdx.x++) launched(arguments);
        return;
    }
    if (fibers.size() < threads) fibers.resize(threads);
    for (unsigned int n = 0; n < threads; n++) {
        Fiber& fiber = fibers[n];
        if (fiber.stack.empty()) fiber.stack.resize(1 << 16);
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.data();
        fiber.context.uc_stack.ss_size = fiber.stack.size();
        fiber.context.uc_link = nullptr;
        fiber.is_begun = fiber.is_done = false;
        fiber.waits = NOTHING;
        makecontext(&fiber.context, fiber_main, 0);
    }
    for (bool is_any = true; is_any;) {
        is_any = false;
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        unsigned int turn = (seed >> 33) % threads;
        for (unsigned int n = 0; n < threads; n++) {  // all that wait for nothing, from some thread on
            unsigned int thread = (n + turn) % threads;
            if (fibers[thread].is_done || fibers[thread].waits != NOTHING) continue;
            is_any = true;
            go_on(thread);
        }
        for (unsigned int first = 0; first < threads; first += 32)
            if (fibers[first].waits == WARP && may_go_on(first, threads)) release(WARP, first, first + 32), is_any = true;
            else for (unsigned int n = first; n < first + 32; n++)
                if (!fibers[n].is_done && fibers[n].waits == WARP && may_go_on(n, threads)) {
                    release(WARP, first, first + 32);
                    is_any = true;
                    break;
                }
        bool is_all = true, is_one = false;
        for (unsigned int n = 0; n < threads; n++) {
            is_all &= fibers[n].is_done || fibers[n].waits == BLOCK;
            is_one |= !fibers[n].is_done;
        }
        if (is_all && is_one) release(BLOCK, 0, threads), is_any = true;
    }
}

// --- the interface of the driver -------------------------------------------------------------------------------------

static int64_t used = 0;
static thread_local bool has_context = false;
#define CONTEXT if (!has_context) return 201;
static std::map<uint64_t, size_t> sizes;

extern "C" {
int cuInit(unsigned int) { return 0; }
int cuDeviceGet(int* device, int) { *device = 0; return 0; }
int cuDevicePrimaryCtxRetain(void** context, int) { *context = (void*) 1; return 0; }
int cuCtxSetCurrent(void*) { has_context = true; return 0; }
int cuDeviceGetName(char* name, int size, int) { snprintf(name, size, "emulated"); return 0; }
int cuDeviceGetDefaultMemPool(void** pool, int) { *pool = (void*) 1; return 0; }
int cuMemPoolSetAttribute(void*, int, void*) { return 0; }
int cuMemPoolGetAttribute(void*, int, uint64_t* value) { std::lock_guard<std::mutex> g(one_at_a_time); *value = used; return 0; }
int cuDeviceGetAttribute(int* value, int which, int) { *value = which == 75 ? 9 : 0; return 0; }
int cuModuleLoadData(void** module, const void*) { CONTEXT *module = (void*) 1; return 0; }
int cuModuleGetFunction(void** function, void*, const char* name) {
    auto found = functions.find(name);
    if (found == functions.end()) return 500;
    *function = &found->second;
    return 0;
}
int cuStreamCreate(void** stream, unsigned int) { CONTEXT static int64_t number = 1; *stream = (void*) number++; return 0; }
int cuStreamSynchronize(void*) { CONTEXT return 0; }
int cuStreamWaitEvent(void*, void*, unsigned int) { return 0; }
int cuEventCreate(void** event, unsigned int) { CONTEXT *event = (void*) 7; return 0; }
int cuEventRecord(void*, void*) { return 0; }
int cuEventDestroy_v2(void*) { return 0; }
int cuMemGetInfo_v2(size_t* free, size_t* total) { CONTEXT *free = *total = (size_t) 1 << 32; return 0; }
int cuMemHostAlloc(void** place, size_t size, unsigned int) { CONTEXT *place = malloc(size); return 0; }
int cuMemAllocAsync(uint64_t* place, size_t size, void*) {
    CONTEXT
    std::lock_guard<std::mutex> guard(one_at_a_time);
    *place = (uint64_t) malloc(size);
    memset((void*) *place, 0xa5, size);  // nobody has written there yet
    sizes[*place] = size;
    used += size;
    return 0;
}
int cuMemFreeAsync(uint64_t place, void*) {
    CONTEXT
    std::lock_guard<std::mutex> guard(one_at_a_time);
    auto found = sizes.find(place);
    if (found == sizes.end()) { fprintf(stderr, "freed twice\n"); abort(); }
    memset((void*) place, 0x5a, found->second);
    used -= found->second;
    sizes.erase(found);
    free((void*) place);
    return 0;
}
int cuMemsetD8Async(uint64_t place, unsigned char value, size_t size, void*) { CONTEXT memset((void*) place, value, size); return 0; }
int cuMemcpyDtoDAsync_v2(uint64_t place, uint64_t origin, size_t size, void*) { CONTEXT memcpy((void*) place, (void*) origin, size); return 0; }
int cuMemcpyDtoHAsync_v2(void* place, uint64_t origin, size_t size, void*) { CONTEXT memcpy(place, (void*) origin, size); return 0; }
int cuMemcpyHtoDAsync_v2(uint64_t place, void* origin, size_t size, void*) { CONTEXT memcpy((void*) place, origin, size); return 0; }
int cuLaunchKernel(Function* function, unsigned int blocks, unsigned int, unsigned int, unsigned int threads, unsigned int,
                   unsigned int, unsigned int, void*, void**, void** extra) {
    CONTEXT
    std::lock_guard<std::mutex> guard(one_at_a_time);
    size_t size = *(size_t*) extra[3];
    if (!blocks || threads > 1024 || size != function->size) {
        fprintf(stderr, "%u blocks of %u threads, %zu bytes of arguments, not %zu\n", blocks, threads, size, function->size);
        return 1;
    }
    arguments = (const char*) extra[1];
    launched = function->launcher;
    gridDim.x = blocks;
    blockDim.x = threads;
    for (unsigned int block = 0; block < blocks; block++) {
        blockIdx.x = block;
        run_block(threads, function->waits);
    }
    return 0;
}
}
