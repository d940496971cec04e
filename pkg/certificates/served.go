// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"context"
	"sync"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/klog/v2"
)

// served is what a replica serves with, and the listeners for changes of it.
type served struct {
	lock      sync.Mutex
	serving   Material
	listeners []dynamiccertificates.Listener
}

// CurrentCertKeyContent implements dynamiccertificates.CertKeyContentProvider.
func (s *served) CurrentCertKeyContent() (certPEM, keyPEM []byte) {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.serving.Serving()
}

// AddListener implements dynamiccertificates.Notifier.
func (s *served) AddListener(l dynamiccertificates.Listener) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.listeners = append(s.listeners, l)
}

// serve serves with the material from now on. The lock is held.
func (s *served) serve(ctx context.Context, m Material) {
	same := s.serves(m.Serving())
	if s.serving = m; same {
		return
	}
	if m.serving != nil {
		klog.FromContext(ctx).Info("Serving with a new certificate", "until", m.serving.NotAfter)
	}
	for _, l := range s.listeners {
		l.Enqueue()
	}
}

// serves reports whether this is what is served. The lock is held.
func (s *served) serves(certPEM, keyPEM []byte) bool {
	lastCert, lastKey := s.serving.Serving()
	return bytes.Equal(lastCert, certPEM) && bytes.Equal(lastKey, keyPEM)
}
