package profile

import (
	"stonetown/internal/document"
	"stonetown/internal/geo"
)

// Place is where an address is, as clients get it.
type Place struct {
	City    *string `json:"city"`
	Country *string `json:"country"`
}

// PlaceOf is a place, or an object of nulls for one that is not known.
func PlaceOf(p geo.Place) Place { return Place{document.OrNull(p.City), document.OrNull(p.Country)} }
