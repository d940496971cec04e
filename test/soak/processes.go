// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/winnow-dev/winnow/test/winnow"
)

// servesWith fails unless a replica serves with the certificate in a file.
func servesWith(r *winnow.Replica, certFile string) error {
	want, err := os.ReadFile(certFile)
	if err != nil {
		return err
	}
	// It is compared with the file, so nobody need have signed it.
	conn, err := tls.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(r.Port)), &tls.Config{
		InsecureSkipVerify: true, ServerName: winnow.ServerName,
	})
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	block, _ := pem.Decode(want)
	if block == nil || !slices.Equal(block.Bytes, conn.ConnectionState().PeerCertificates[0].Raw) {
		return errors.New("it serves with an older certificate")
	}
	return nil
}

// panics looks for panics in the logs of the replicas. That the answer to a client that is gone is aborted is none.
func (w *world) panics() (err error) {
	for _, r := range w.server.Replicas {
		log, errRead := r.Log()
		err = errors.Join(err, errRead)
		for line := range strings.Lines(log) {
			isPanic := strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") || strings.Contains(line, "Observed a panic")
			if isPanic && !strings.Contains(line, "abort Handler") {
				err = errors.Join(err, fmt.Errorf("%s: %s", r.Name, strings.TrimSpace(line)))
			}
		}
	}
	return err
}
