// Goroutines that wait for known things, and what the program itself says of them.
//
//	goroutines PORT [MANY]   6 take turns with a mutex, each for 20 ms; 5 wait for 127.0.0.1:PORT to answer, 4 for a
//	                         channel, 3 in select, 2 for a WaitGroup, 2 sleep, one of 300 calls waits for a condition; MANY
//	                         more wait for another channel. "ready"; for each line on stdin the file of that name is
//	                         written: its profile "goroutine" (pprof), and "written" is printed
package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"runtime/pprof"
	"strconv"
	"sync"
	"time"
)

var (
	turn    sync.Mutex
	started sync.WaitGroup
	never   sync.WaitGroup
	work    = make(chan int)
	other   = make(chan int)
	changed = sync.NewCond(&sync.Mutex{})
)

//go:noinline
func takeTurns() {
	for {
		turn.Lock()
		time.Sleep(20 * time.Millisecond)
		turn.Unlock()
	}
}

//go:noinline
func ask(c net.Conn) {
	answer := make([]byte, 8)
	for {
		if _, err := c.Read(answer); err != nil {
			return
		}
	}
}

//go:noinline
func receive(c chan int) {
	for range c {
	}
}

//go:noinline
func choose() {
	for {
		select {
		case <-work:
		case <-other:
		}
	}
}

//go:noinline
func deep(n int) int {
	var room [16]int
	if n == 0 {
		changed.L.Lock()
		changed.Wait()
		return room[n]
	}
	return deep(n-1) + room[n%16]
}

func begin(n int, f func()) {
	for i := 0; i < n; i++ {
		started.Add(1)
		go func() {
			started.Done()
			f()
		}()
	}
}

func main() {
	many := 0
	never.Add(1)
	if len(os.Args) > 2 {
		many, _ = strconv.Atoi(os.Args[2])
	}
	for i := 0; i < 5; i++ {
		c, err := net.Dial("tcp", "127.0.0.1:"+os.Args[1])
		if err != nil {
			panic(err)
		}
		begin(1, func() { ask(c) })
	}
	begin(6, takeTurns)
	begin(4, func() { receive(work) })
	begin(3, choose)
	begin(2, func() { never.Wait() })
	begin(2, func() { time.Sleep(time.Hour) })
	begin(1, func() { deep(300) })
	begin(many, func() { receive(other) })
	started.Wait()
	time.Sleep(100 * time.Millisecond)
	fmt.Println("ready")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		f, err := os.Create(lines.Text())
		if err != nil {
			panic(err)
		}
		pprof.Lookup("goroutine").WriteTo(f, 0)
		f.Close()
		fmt.Println("written")
	}
}
