// The same service in Go, with what the scheduler sees of it: hot, idle.
package main

import (
	"fmt"
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

func main() {
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
	if os.Args[1] == "hot" {
		go func() {
			for n := uint64(0); ; n++ {
				sink += rankPages(n)
			}
		}()
	}
	fmt.Println("ready")
	time.Sleep(time.Hour)
}
