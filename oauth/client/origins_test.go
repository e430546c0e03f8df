package client

import "testing"

// What was read before a change is not cached after it.
func TestOriginCache(t *testing.T) {
	c := newOriginCache()
	since := c.begin()
	c.add("a", origins{}, since)
	if _, ok := c.tenants.Get("a"); !ok {
		t.Error("what was read is not cached")
	}
	since = c.begin()
	c.changed("a")
	c.add("a", origins{}, since)
	if _, ok := c.tenants.Get("a"); ok {
		t.Error("what was read before a change is cached")
	}
}
