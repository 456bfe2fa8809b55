// A small service in Go whose trouble is known: service MODE [ARGUMENT]. "ready" on stdout when it works.
package main

import (
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

var sink uint64

//go:noinline
func rankPages(n uint64) uint64 {
	h := n
	for i := 0; i < 20000; i++ {
		h = (h ^ (h >> 7)) * 1099511628211
	}
	return h
}

var tickets [][]byte

//go:noinline
func keepTicket(n uint64) {
	t := make([]byte, 16384)
	for i := range t {
		t[i] = byte(n)
	}
	tickets = append(tickets, t)
	time.Sleep(2 * time.Millisecond)
}

var totals sync.Mutex

//go:noinline
func bookSeat(n uint64) {
	totals.Lock()
	sink += n
	time.Sleep(3 * time.Millisecond)
	totals.Unlock()
}

var ledger *os.File

//go:noinline
func writeLedger(n uint64) {
	line := make([]byte, 4096)
	for i := range line {
		line[i] = 'a' + byte(n%26)
	}
	if _, err := ledger.WriteAt(line, int64(n%64*4096)); err != nil {
		panic(err)
	}
	if err := ledger.Sync(); err != nil {
		panic(err)
	}
}

var backend net.Conn

//go:noinline
func askPricing(n uint64) {
	answer := make([]byte, 64)
	fmt.Fprintf(backend, "%8d", n)
	if _, err := backend.Read(answer); err != nil {
		panic(err)
	}
}

type node struct {
	left, right *node
	value       uint64
}

//go:noinline
func growTree(depth int) *node {
	if depth == 0 {
		return &node{}
	}
	return &node{growTree(depth - 1), growTree(depth - 1), uint64(depth)}
}

// What lives is 48 MiB of small objects, and each answer leaves some that nobody needs any more.
var catalogue *node

//go:noinline
func buildAnswer(n uint64) {
	answer := growTree(12)
	sink += answer.value
}

var cache = map[uint64][]byte{}

//go:noinline
func cachePut(n uint64) {
	e := make([]byte, 16384)
	for i := range e {
		e[i] = byte(n)
	}
	cache[n%4096] = e
}

func forever(work func(uint64)) {
	go func() {
		for n := uint64(0); ; n++ {
			work(n)
		}
	}()
}

func pool() {
	var wg sync.WaitGroup
	jobs := make(chan int)
	for i := 0; i < 4; i++ {
		go func() {
			for range jobs {
				wg.Done()
			}
		}()
	}
	for i := 0; i < 100000; i++ {
		wg.Add(1)
		jobs <- i
	}
	wg.Wait()
}

func main() {
	var err error
	pool()
	switch os.Args[1] {
	case "hot":
		forever(func(n uint64) { sink += rankPages(n) })
	case "leak":
		forever(keepTicket)
	case "lock":
		for i := 0; i < 6; i++ {
			forever(bookSeat)
		}
	case "disk":
		if ledger, err = os.Create(os.Args[2]); err != nil {
			panic(err)
		}
		forever(writeLedger)
	case "peer":
		if backend, err = net.Dial("tcp", "127.0.0.1:"+os.Args[2]); err != nil {
			panic(err)
		}
		forever(askPricing)
	case "gc":
		catalogue = growTree(20)
		forever(buildAnswer)
	case "cache":
		// Several times over: the heap has then the size that the collector lets it have.
		for n := uint64(0); n < 8*4096; n++ {
			cachePut(n)
		}
		forever(func(n uint64) { cachePut(n); time.Sleep(500 * time.Microsecond) })
	case "idle":
	default:
		os.Exit(2)
	}
	fmt.Println("ready")
	time.Sleep(time.Hour)
}
