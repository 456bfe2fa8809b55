// Green threads that allocate in C: goroutines change threads between the calls. At each line of its
// standard input it tells what it did and does more; at the end of it, it exits with 7.
package main

/*
#include <stdlib.h>
static void *__attribute__((noinline)) go_malloc(size_t size)
{
	void *p = malloc(size);

	__asm__ volatile("" : "+r"(p));
	return p;
}
*/
import "C"

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"sync"
)

const workers, blocks = 16, 400

func work(n int, done *sync.WaitGroup) {
	for i := 0; i < blocks; i++ {
		p := C.go_malloc(C.size_t(64 + n))
		runtime.Gosched()
		if i%4 != 0 {
			C.free(p)
		}
	}
	done.Done()
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	fmt.Println("ready", os.Getpid())
	for in.Scan() {
		var done sync.WaitGroup
		bytes := 0
		for n := 0; n < workers; n++ {
			done.Add(1)
			bytes += blocks * (64 + n)
			go work(n, &done)
		}
		done.Wait()
		fmt.Println("site go_malloc", workers*blocks, bytes, workers*blocks/4, bytes/4)
		fmt.Println("end")
	}
	os.Exit(7)
}
