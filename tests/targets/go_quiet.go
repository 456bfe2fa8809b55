// Allocates, and has no part in profiling: Go's linker turns its sampler off.
package main

import (
	"fmt"
	"time"
)

var last []byte

func main() {
	fmt.Println("ready")
	for {
		last = make([]byte, 10000)
		time.Sleep(time.Millisecond)
	}
}
