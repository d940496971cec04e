// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package synthetic serves Jobs by the million as a kube-apiserver does, in protobuf, to benchmarks. It makes each of them
// from its number when it is asked for, and keeps none. Everything else comes from a real API server behind it.
package synthetic

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Options of a Server.
type Options struct {
	// Upstream is the API server behind, and the user that everybody is there.
	Upstream *rest.Config
	// Certificate to serve with, for 127.0.0.1.
	CertFile, KeyFile string
	// Namespaces that the Jobs are spread over, one after the other. They exist on the API server behind.
	Namespaces []string
	// Finished is when the newest Jobs finished.
	Finished time.Time
	// CronJobs are the UIDs of those that most Jobs belong to, by namespace and by one of Apps, which is also their name. They are of
	// the API server behind. Without them no Job has an owner.
	CronJobs map[string]map[string]types.UID
}

// Server is an API server with synthetic Jobs.
type Server struct {
	options  Options
	history  *history
	listener net.Listener
	server   *http.Server
}

// New starts a Server without Jobs.
func New(o Options) (*Server, error) {
	transport, err := rest.TransportFor(o.Upstream)
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(o.Upstream.Host)
	if err != nil {
		return nil, err
	}
	certificate, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, history: newHistory()}
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	const one = "/apis/batch/v1/namespaces/{namespace}/jobs/{name}"
	mux.HandleFunc("GET /apis/batch/v1/jobs", s.collection)
	mux.HandleFunc("GET /apis/batch/v1/namespaces/{namespace}/jobs", s.collection)
	mux.HandleFunc("GET "+one, s.get)
	mux.HandleFunc("DELETE "+one, s.remove)
	mux.Handle("/", &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // Watches are read as they come.
		// A client that goes away is no error here.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	})
	s.server = &http.Server{
		Handler: mux, ReadHeaderTimeout: time.Minute, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}},
	}
	go func() { _ = s.server.ServeTLS(s.listener, "", "") }()
	return s, nil
}

// Close cuts all connections.
func (s *Server) Close() error { return s.server.Close() }

// WriteKubeconfig writes a kubeconfig for the server, whose certificate caPEM verifies.
func (s *Server) WriteKubeconfig(path string, caPEM []byte) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["synthetic"] = &clientcmdapi.Cluster{Server: "https://" + s.listener.Addr().String(), CertificateAuthorityData: caPEM}
	config.Contexts["synthetic"] = &clientcmdapi.Context{Cluster: "synthetic"}
	config.CurrentContext = "synthetic"
	return clientcmd.WriteToFile(*config, path)
}

// Reset replaces all Jobs by new ones, number 0 to n-1. Number i is in the namespace i modulo their number. All watches end.
func (s *Server) Reset(n int) { s.history.reset(n) }

// Expire ends all watches and forgets what they could go on from, as an API server does whose watch cache starts anew: every
// client has to list again.
func (s *Server) Expire() { s.history.expire() }

// Modify gives a Job other annotations and a new resource version.
func (s *Server) Modify(number int, annotations map[string]string) {
	s.history.modify(number, annotations)
}

// DeletedAt is when a DELETE of a Job was received that was granted; zero when there was none.
func (s *Server) DeletedAt(number int) time.Time { return s.history.deletedAt(number) }

// Deletions is how many Jobs were deleted since the last Reset.
func (s *Server) Deletions() int { return s.history.deletions() }
