// Goroutines in stacks of known depth: in Go's own code, in the vDSO, in the memory allocator. Runs
// until its standard input ends.
package main

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"
)

const deep = 20

//go:noinline
func depth(n int, f func() int) int {
	if n == 0 {
		return f()
	}
	return depth(n-1, f) + 1
}

//go:noinline
func spin() int {
	s := 0
	for i := 0; i < 2000000; i++ {
		s = s*31 + i
	}
	return s
}

//go:noinline
func clock() int {
	s := 0
	for i := 0; i < 50000; i++ {
		s += int(time.Now().UnixNano() & 3)
	}
	return s
}

//go:noinline
func alloc() int {
	var keep [][]byte
	for i := 0; i < 20000; i++ {
		keep = append(keep, make([]byte, 300+i%1000))
	}
	return len(keep)
}

func main() {
	var ended int32
	done := make(chan int)
	go func() {
		io.Copy(io.Discard, os.Stdin)
		atomic.StoreInt32(&ended, 1)
	}()
	fmt.Println("ready", os.Getpid())
	go func() {
		n := 0
		for atomic.LoadInt32(&ended) == 0 {
			n += depth(deep, spin) + depth(deep, clock) + depth(deep, alloc)
		}
		done <- n
	}()
	<-done
}
