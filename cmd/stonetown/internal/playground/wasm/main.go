//go:build js

// Command wasm is the engine for browsers, without a server: package playground as the function
// stonetown(request, answered) of JavaScript. The request, and the answer that answered is called
// with, are texts in JSON. A request waits for the answer to the one before.
//
// The script tools/playground builds it for the documentation.
package main

import (
	"context"
	"syscall/js"

	"stonetown/cmd/stonetown/internal/playground"
)

func main() {
	var session playground.Session
	js.Global().Set("stonetown", js.FuncOf(func(_ js.Value, args []js.Value) any {
		request, answered := args[0].String(), args[1]
		// Apart from the call, because the engine may wait for a timer, which needs the event loop.
		go func() { answered.Invoke(string(session.JSON(context.Background(), []byte(request)))) }()
		return nil
	}))
	select {} // the function is called for as long as the page exists
}
