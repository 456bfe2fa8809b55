// Go that calls C that calls Go back. Runs until its standard input ends.
package main

/*
extern int goBack(int);
static int __attribute__((noinline)) spin_c(int n)
{
	volatile int s = 0;

	for (int i = 0; i < n; i++)
		s += i;
	return s;
}
static int __attribute__((noinline)) via_c(int n)
{
	return goBack(n) + 1;
}
*/
import "C"

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
)

//export goBack
func goBack(n C.int) C.int {
	return C.int(spinGo(int(n)))
}

//go:noinline
func spinGo(n int) int {
	s := 0
	for i := 0; i < n; i++ {
		s = s*31 + i
	}
	return s
}

//go:noinline
func callC() int { return int(C.spin_c(2000000)) }

//go:noinline
func callBack() int { return int(C.via_c(2000000)) }

func main() {
	var ended int32
	n := 0
	go func() {
		io.Copy(io.Discard, os.Stdin)
		atomic.StoreInt32(&ended, 1)
	}()
	fmt.Println("ready", os.Getpid())
	for atomic.LoadInt32(&ended) == 0 {
		n += callC() + callBack()
	}
	fmt.Println(n)
}
