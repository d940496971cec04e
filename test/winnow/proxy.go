// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package winnow

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Proxy stands between a replica and the API server as a man in the middle, who may set its clock wrong, freeze and replay its watches,
// hold requests back and count what it gets.
type Proxy struct {
	// Kubeconfig is the path of one by which a replica goes through the proxy, with the rights of Winnow.
	Kubeconfig string

	listener net.Listener
	server   *http.Server
	offset   atomic.Int64 // of the Date of answers, in nanoseconds

	lock     sync.Mutex
	frozen   map[string]chan struct{} // by resource, closed when its watches go on
	watches  map[*watchBody]bool      // those that are open
	received map[string]int64         // by resource
	before   func(*http.Request)
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
	p := &Proxy{
		frozen: map[string]chan struct{}{}, watches: map[*watchBody]bool{}, received: map[string]int64{},
		before: func(*http.Request) {},
	}
	if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	pass := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			if r.In.URL.Query().Has("watch") { // Since 1.37 the API server compresses the list that a watch begins with.
				r.Out.Header.Set("Accept-Encoding", "identity")
			}
		},
		Transport:      transport,
		FlushInterval:  -1, // Watches are read as they come.
		ModifyResponse: p.tamper,
	}
	p.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.lock.Lock()
		before := p.before
		p.lock.Unlock()
		before(r)
		pass.ServeHTTP(w, r)
	})}
	go func() { _ = p.server.Serve(p.listener) }()
	p.Kubeconfig = filepath.Join(s.cluster.Dir, fmt.Sprintf("kubeconfig-proxy-%d", p.listener.Addr().(*net.TCPAddr).Port))
	return p, p.writeKubeconfig()
}

// SetClock has the API server's clock go ahead of the right time by offset, or behind it.
func (p *Proxy) SetClock(offset time.Duration) { p.offset.Store(int64(offset)) }

// Freeze holds back all that watches of a resource report from now on, until thaw is called. The connections stay open.
func (p *Proxy) Freeze(resource string) (thaw func()) {
	p.lock.Lock()
	defer p.lock.Unlock()
	frozen := make(chan struct{})
	p.frozen[resource] = frozen
	return sync.OnceFunc(func() {
		p.lock.Lock()
		defer p.lock.Unlock()
		delete(p.frozen, resource)
		close(frozen)
	})
}

// Before has a function called with each request before it is passed on, which waits until the function returns.
func (p *Proxy) Before(f func(*http.Request)) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.before = f
}

// Received returns how many bytes of a resource lists and watches have had. Short answers and watches are not compressed.
func (p *Proxy) Received(resource string) int64 {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.received[resource]
}

// Close cuts all connections.
func (p *Proxy) Close() error { return p.server.Close() }

func (p *Proxy) tamper(response *http.Response) error {
	r := response.Request
	counted := &body{response.Body, p, path.Base(r.URL.Path)}
	response.Body = counted
	if r.URL.Query().Has("watch") && response.StatusCode == http.StatusOK {
		response.Body = p.openWatch(r.Context(), counted, response.Header.Get("Content-Type"))
	}
	return p.shiftDate(response)
}

// body is an answer, which is counted.
type body struct {
	io.ReadCloser
	proxy    *Proxy
	resource string
}

// Read implements io.Reader.
func (b *body) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	b.proxy.lock.Lock()
	defer b.proxy.lock.Unlock()
	b.proxy.received[b.resource] += int64(n)
	return n, err
}

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
