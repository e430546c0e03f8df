// Package geo finds the place of an IP address in a GeoIP database in MaxMind's format,
// which an operator may provide.
package geo

import (
	"fmt"
	"net/netip"

	"github.com/oschwald/maxminddb-golang/v2"
)

// Place is where an address is, as far as that is known.
type Place struct {
	City    string // in English
	Country string // ISO 3166-1 alpha-2
}

// Database knows places. It is safe for concurrent use; nil knows none.
type Database struct{ reader *maxminddb.Reader }

// Open opens a database of cities or of countries.
func Open(path string) (*Database, error) {
	reader, err := maxminddb.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return &Database{reader}, nil
}

// Close closes the database.
func (d *Database) Close() error {
	if d == nil {
		return nil
	}
	return d.reader.Close()
}

// Find says where an address is; the zero Place if that is not known.
func (d *Database) Find(ip string) Place {
	if d == nil {
		return Place{}
	}
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
	// What cannot be read is not known: nothing depends on it.
	if d.reader.Lookup(addr).Decode(&record) != nil {
		return Place{}
	}
	return Place{record.City.Names.English, record.Country.Code}
}
