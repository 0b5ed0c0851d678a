// How busy others keep the machine.
#ifndef OCTAVO_BENCH_LOAD_H_
#define OCTAVO_BENCH_LOAD_H_

namespace octavo::bench {

// Share of the CPU time of all CPUs that processes other than this one have taken since the first call: busy time in /proc/stat, stolen
// time included, less this process's own by getrusage. 0 where the system does not tell and in the first moments.
double LoadByOthers();

}  // namespace octavo::bench

#endif  // OCTAVO_BENCH_LOAD_H_
