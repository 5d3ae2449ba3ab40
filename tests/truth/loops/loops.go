// Loops of Go: `loops LOOP rate KIB_SMALL KIB_LARGE | run KIB SECONDS`.
package main

import (
	"fmt"
	"os"
	"sort"
	"strconv"
	"syscall"
)

const sliceS, slices = 0.03, 15

var sink uint64

func scramble(x uint64) uint64 {
	x ^= x << 13
	x ^= x >> 7
	return x ^ x<<17
}

func sum(kib int) func() int {
	a, at := make([]uint64, kib*128), 0
	for i := range a {
		a[i] = uint64(i)
	}
	return func() int {
		for _, v := range a[at : at+1024] {
			sink += v
		}
		if at += 1024; at+1024 > len(a) {
			at = 0
		}
		return 1
	}
}

func gather(kib int) func() int {
	a, x := make([]uint64, kib*128), uint64(88172645463325252)
	for i := range a {
		a[i] = 1
	}
	return func() int {
		for i := 0; i < 1000; i++ {
			x = scramble(x)
			sink += a[x%uint64(len(a))]
		}
		return 1
	}
}

func table(kib int) func() int {
	n, x := uint64(kib*1024/40), uint64(88172645463325252)
	m := make(map[uint64]uint64)
	for i := uint64(0); i < n; i++ {
		m[i*7919] = i
	}
	return func() int {
		for i := 0; i < 1000; i++ {
			x = scramble(x)
			sink += m[x%n*7919]
		}
		return 1
	}
}

func search(kib int) func() int {
	a, x := make([]int, kib*128), uint64(88172645463325252)
	for i := range a {
		a[i] = 2 * i
	}
	return func() int {
		for i := 0; i < 300; i++ {
			x = scramble(x)
			sink += uint64(sort.SearchInts(a, int(x%uint64(2*len(a)))))
		}
		return 1
	}
}

func seconds() float64 {
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	of := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return of(usage.Utime) + of(usage.Stime)
}

func workFor(step func() int, time float64) float64 {
	start, done := seconds(), 0
	now := start
	for now-start < time {
		for i := 0; i < 10; i++ {
			done += step()
		}
		now = seconds()
	}
	return float64(done) / (now - start)
}

func main() {
	loops := map[string]func(int) func() int{"sum": sum, "gather": gather, "table": table, "search": search}
	loop := loops[os.Args[1]]
	first, _ := strconv.Atoi(os.Args[3])
	if os.Args[2] == "rate" {
		second, _ := strconv.Atoi(os.Args[4])
		small, large, ratios := loop(first), loop(second), []float64{}
		workFor(small, sliceS)
		workFor(large, sliceS)
		for i := 0; i < slices; i++ {
			before, between := workFor(small, sliceS), workFor(large, 2*sliceS)
			ratios = append(ratios, between/((before+workFor(small, sliceS))/2))
		}
		sort.Float64s(ratios)
		fmt.Println(ratios[slices/2])
		return
	}
	time, _ := strconv.ParseFloat(os.Args[4], 64)
	workFor(loop(first), time)
}
