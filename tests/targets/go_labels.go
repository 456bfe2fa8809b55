// Computes under pprof labels, and without: known parts of its CPU time.
//
//	go_labels     "ready"; then rounds of three parts of work under endpoint=/search, one under endpoint=/cart and
//	              user=anna, one without labels; it sleeps 10 ms under endpoint=/sleep
package main

import (
	"context"
	"fmt"
	"runtime/pprof"
	"time"
)

var sink uint64

//go:noinline
func spin(parts int) {
	for i := 0; i < parts*5000000; i++ {
		sink = sink*31 + 7
	}
}

func main() {
	ctx := context.Background()
	fmt.Println("ready")
	for {
		pprof.Do(ctx, pprof.Labels("endpoint", "/search"), func(context.Context) { spin(3) })
		pprof.Do(ctx, pprof.Labels("endpoint", "/cart", "user", "anna"), func(context.Context) { spin(1) })
		spin(1)
		pprof.Do(ctx, pprof.Labels("endpoint", "/sleep"), func(context.Context) { time.Sleep(10 * time.Millisecond) })
	}
}
