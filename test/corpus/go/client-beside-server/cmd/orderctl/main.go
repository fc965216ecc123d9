package main

import (
	"fmt"
	"net/http"
)

// It asks the server, and never calls http.ListenAndServe(…) itself.
func main() {
	response, err := http.Get("http://127.0.0.1:8080/")
	fmt.Println(response, err)
}
