// Package geo locates IP addresses with a GeoIP database in MaxMind's format.
package geo

import (
	"fmt"
	"net/netip"

	"github.com/oschwald/maxminddb-golang/v2"
)

// Place is the location of an address. Unknown parts are empty.
type Place struct {
	City    string // in English
	Country string // ISO 3166-1 alpha-2
}

// Locator locates IP addresses: a [*Database], or [None].
type Locator interface {
	// Find returns the location of an address; the zero Place if it is unknown.
	Find(ip string) Place
	// Close releases the database.
	Close() error
}

// None is the [Locator] of a deployment without a database.
type None struct{}

// Find implements [Locator].
func (None) Find(string) Place { return Place{} }

// Close implements [Locator].
func (None) Close() error { return nil }

// Database is a GeoIP database. It is safe for concurrent use.
type Database struct{ reader *maxminddb.Reader }

// Open opens a database of cities or of countries.
func Open(path string) (*Database, error) {
	reader, err := maxminddb.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return &Database{reader}, nil
}

// Close implements [Locator].
func (d *Database) Close() error { return d.reader.Close() }

// Find implements [Locator].
func (d *Database) Find(ip string) Place {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return Place{}
	}
	var record struct {
		City struct {
			Names struct {
				English string `maxminddb:"en"`
			} `maxminddb:"names"`
		} `maxminddb:"city"`
		Country struct {
			Code string `maxminddb:"iso_code"`
		} `maxminddb:"country"`
	}
	// Locations are for display only, so a damaged record is an unknown location.
	if d.reader.Lookup(addr).Decode(&record) != nil {
		return Place{}
	}
	return Place{record.City.Names.English, record.Country.Code}
}
