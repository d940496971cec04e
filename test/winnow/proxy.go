// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package winnow

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Proxy stands between a replica and the API server as a man in the middle, who may set its clock wrong.
type Proxy struct {
	// Kubeconfig is the path of one by which a replica goes through the proxy, with the rights of Winnow.
	Kubeconfig string

	listener net.Listener
	server   *http.Server
	offset   atomic.Int64 // of the Date of answers, in nanoseconds
}

// NewProxy starts a proxy that changes nothing yet.
func (s *Server) NewProxy() (*Proxy, error) {
	config, err := clientcmd.BuildConfigFromFlags("", s.options.Kubeconfig)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	p := &Proxy{}
	if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	p.server = &http.Server{Handler: &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:      transport,
		FlushInterval:  -1, // Watches are read as they come.
		ModifyResponse: p.shiftDate,
	}}
	go func() { _ = p.server.Serve(p.listener) }()
	p.Kubeconfig = filepath.Join(s.cluster.Dir, fmt.Sprintf("kubeconfig-proxy-%d", p.listener.Addr().(*net.TCPAddr).Port))
	return p, p.writeKubeconfig()
}

// SetClock has the API server's clock go ahead of the right time by offset, or behind it.
func (p *Proxy) SetClock(offset time.Duration) { p.offset.Store(int64(offset)) }

// Close cuts all connections.
func (p *Proxy) Close() error { return p.server.Close() }

func (p *Proxy) shiftDate(response *http.Response) error {
	at, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		return fmt.Errorf("the Date of %s: %w", response.Request.URL.Path, err)
	}
	response.Header.Set("Date", at.Add(time.Duration(p.offset.Load())).UTC().Format(http.TimeFormat))
	return nil
}

func (p *Proxy) writeKubeconfig() error {
	config := clientcmdapi.NewConfig()
	config.Clusters["proxy"] = &clientcmdapi.Cluster{Server: "http://" + p.listener.Addr().String()}
	config.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy"}
	config.CurrentContext = "proxy"
	return clientcmd.WriteToFile(*config, p.Kubeconfig)
}
