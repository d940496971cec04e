// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package winnow

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"github.com/winnow-dev/winnow/test/cluster"
)

// Replica is one process of winnow-apiserver. Started again, it has the same name, port and log file.
type Replica struct {
	Name string
	Port int
	// Process of the last start.
	Process *cluster.Process

	flags  []string
	server *Server
}

// Start starts the replica, waits until it is ready, and lets the aggregator reach it.
func (r *Replica) Start(ctx context.Context) error {
	if err := r.StartOnly(ctx); err != nil {
		return err
	}
	if err := r.waitReady(ctx); err != nil {
		return err
	}
	r.server.forwarder.add(r.address())
	return nil
}

// StartOnly starts the replica and does not wait. The aggregator does not reach it.
func (r *Replica) StartOnly(ctx context.Context) error {
	s := r.server
	args := append([]string{
		"--kubeconfig=" + s.options.Kubeconfig,
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(r.Port),
		"--manage-storage=false", // install has applied it
		"--shutdown-delay-duration=0s",
	}, slices.Concat(s.registrationFlags(), s.cluster.OwnEtcdFlags(), s.options.Flags, r.flags)...)
	var err error
	r.Process, err = s.cluster.Run(ctx, r.Name, s.options.Binary, args, nil)
	return err
}

// registrationFlags say how the aggregator reaches the replicas.
func (s *Server) registrationFlags() []string {
	if s.options.Register {
		flags := []string{"--service-port=" + strconv.Itoa(s.Port())}
		if s.options.CertDir != "" {
			flags = append(flags,
				"--tls-cert-file="+s.certFile("tls.crt"), "--tls-private-key-file="+s.certFile("tls.key"), "--tls-ca-file="+s.certFile("ca.crt"))
		}
		return flags
	}
	return []string{
		"--register=false", "--tls-cert-file=" + s.certificate.CertFile, "--tls-private-key-file=" + s.certificate.KeyFile,
	}
}

func (s *Server) certFile(name string) string { return filepath.Join(s.options.CertDir, name) }

// waitReady waits for /readyz. A replica that ends meanwhile is an error with the end of its log.
func (r *Replica) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-r.Process.Done():
			cancel(errors.New("it ended"))
		case <-ctx.Done():
		}
	}()
	err := poll(ctx, func(ctx context.Context) error {
		answer, err := r.Get(ctx, "/readyz?verbose")
		if err != nil {
			return fmt.Errorf("%w: %s", err, answer)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s is not ready: %w; the end of its log:\n%s", r.Name, errors.Join(context.Cause(ctx), err), r.logEnd())
	}
	return nil
}

// Get asks the replica directly, with all rights.
func (r *Replica) Get(ctx context.Context, path string) (string, error) {
	return r.GetAs(ctx, r.server.cluster.RESTConfig(), path)
}

// GetAs asks the replica directly, as the user of a configuration.
func (r *Replica) GetAs(ctx context.Context, user *rest.Config, path string) (string, error) {
	caPEM, err := r.server.caPEM(ctx)
	if err != nil {
		return "", err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(caPEM)
	certificate, err := tls.X509KeyPair(user.CertData, user.KeyData)
	if err != nil {
		return "", err
	}
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, ServerName: ServerName, Certificates: []tls.Certificate{certificate}},
		DisableKeepAlives: true, DisableCompression: true, // Of metrics that would be most of the work.
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+r.address()+path, nil)
	if err != nil {
		return "", err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s of %s: %s", path, r.Name, response.Status)
	}
	return string(body), err
}

// Leave ends the replica with SIGTERM, as a rolling update does: it gets no new connections after the time that a Service needs to learn of
// it, and keeps those that it has, until its grace period ends.
func (r *Replica) Leave(learned, grace time.Duration) error {
	drained := time.AfterFunc(learned, func() { r.server.forwarder.drain(r.address()) })
	defer drained.Stop()
	if err := r.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-r.Process.Done():
	case <-time.After(grace):
	}
	return r.Stop()
}

// Kill ends the replica with SIGKILL.
func (r *Replica) Kill() error {
	r.server.forwarder.remove(r.address())
	return r.Process.Kill()
}

// Stop ends the replica with SIGTERM; any exit status but 0 is an error. One that has ended is none.
func (r *Replica) Stop() error {
	if r.Process == nil {
		return nil
	}
	select {
	case <-r.Process.Done():
		return nil
	default:
	}
	if err := r.Process.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	err := r.Process.Stop()
	r.server.forwarder.remove(r.address())
	if err != nil {
		return fmt.Errorf("%s: %w; the end of its log:\n%s", r.Name, err, r.logEnd())
	}
	return nil
}

// Retire ends the replica and removes it from the server.
func (r *Replica) Retire() error {
	s := r.server
	s.lock.Lock()
	s.Replicas = slices.DeleteFunc(s.Replicas, func(other *Replica) bool { return other == r })
	s.lock.Unlock()
	return r.Stop()
}

// Pause freezes the replica with SIGSTOP, and cuts its connections as when its node goes away.
func (r *Replica) Pause() error {
	r.server.forwarder.remove(r.address())
	return r.Process.Signal(syscall.SIGSTOP)
}

// Continue ends a Pause.
func (r *Replica) Continue() error {
	if err := r.Process.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	r.server.forwarder.add(r.address())
	return nil
}

// Log is all that the replica has written, over all its starts.
func (r *Replica) Log() (string, error) {
	log, err := os.ReadFile(r.Process.LogFile)
	return string(log), err
}

func (r *Replica) logEnd() string {
	log, err := os.ReadFile(r.Process.LogFile)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(string(bytes.TrimSpace(log)), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

func (r *Replica) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(r.Port)) }
