package profile

import (
	"stonetown/internal/document"
	"stonetown/internal/geo"
)

// Place is the representation of the location of an address.
type Place struct {
	City    *string `json:"city"`
	Country *string `json:"country"`
}

// PlaceOf returns the representation of a location. The members of an unknown one are null.
func PlaceOf(p geo.Place) Place { return Place{document.OrNull(p.City), document.OrNull(p.Country)} }
