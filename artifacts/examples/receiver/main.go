// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Command receiver prints the events that Winnow sends. It needs tls.crt and tls.key in its folder.
package main

import (
	"encoding/json"
	"log"
	"net/http"
	"os"
)

// receive accepts a batch of events. An event may come twice: a real receiver remembers the sources and IDs of the last day.
func receive(w http.ResponseWriter, r *http.Request) {
	var events []struct {
		ID, Type, Source, Subject string
		Data                      json.RawMessage
	}
	if r.Header.Get("Authorization") != "Bearer "+os.Getenv("TOKEN") {
		w.WriteHeader(http.StatusUnauthorized)
	} else if json.NewDecoder(http.MaxBytesReader(w, r.Body, 2<<20)).Decode(&events) != nil {
		w.WriteHeader(http.StatusBadRequest)
	}
	for _, e := range events {
		log.Println(e.ID, e.Type, e.Subject, string(e.Data))
	}
}

func main() {
	http.HandleFunc("POST /winnow", receive)
	log.Fatal(http.ListenAndServeTLS(":8443", "tls.crt", "tls.key", nil))
}
