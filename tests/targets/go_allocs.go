// Allocates in functions by known amounts, on command; prints what each of them allocated and holds.
// Commands come from a file that is named, and nothing is printed then, or from stdin.
//
//	run N: N rounds; rate N: runtime.MemProfileRate; drop: frees some; profile PATH: Go's own heap profile, after a collection; quit
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
)

type node struct {
	next *node
	data [120]byte // 128 bytes in all: of a size class of its own
}

type wide struct {
	p    [2]*node // from Go 1.22 on, larger objects with pointers have a header
	data [1008]byte
}

var (
	kept    *node
	wides   []*wide
	slabs   [][]byte
	scratch []byte
)

//go:noinline
func keepNodes(n int) {
	for i := 0; i < n; i++ {
		kept = &node{next: kept}
	}
}

//go:noinline
func keepWide(n int) {
	for i := 0; i < n; i++ {
		wides[i] = &wide{}
	}
}

//go:noinline
func keepSlabs(n int) {
	for i := 0; i < n; i++ {
		slabs[i] = make([]byte, 1<<20)
	}
}

//go:noinline
func churn(n int) {
	for i := 0; i < n; i++ {
		scratch = make([]byte, 4096)
	}
}

func profile(path string) {
	// What is freed in one cycle is in the profile after the next.
	for i := 0; i < 3; i++ {
		runtime.GC()
	}
	f, err := os.Create(path)
	if err == nil {
		err = pprof.Lookup("heap").WriteTo(f, 0)
	}
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	f.Close()
}

func main() {
	if len(os.Args) > 1 {
		os.Stdin, _ = os.Open(os.Args[1])
		os.Stdout, _ = os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	}
	in := bufio.NewScanner(os.Stdin)
	fmt.Println("ready")
	for in.Scan() {
		words := strings.Fields(in.Text())
		switch words[0] {
		case "run":
			n := 0
			fmt.Sscan(words[1], &n)
			wides, slabs = make([]*wide, n), make([][]byte, n/1000)
			keepNodes(4 * n)
			keepWide(n)
			keepSlabs(n / 1000)
			churn(10 * n)
			scratch = nil
			fmt.Println("site main.keepNodes", 4*n, 4*n*128, 4*n*128)
			fmt.Println("site main.keepWide", n, n*1024, n*1024)
			fmt.Println("site main.keepSlabs", n/1000, n/1000<<20, n/1000<<20)
			fmt.Println("site main.churn", 10*n, 10*n*4096, 0)
		case "rate":
			fmt.Sscan(words[1], &runtime.MemProfileRate)
		case "drop":
			kept = nil
			for i := range slabs {
				slabs[i] = nil
			}
		case "profile":
			profile(words[1])
		case "quit":
			return
		}
		fmt.Println("end")
	}
}
