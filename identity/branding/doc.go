// Package branding has the look of a tenant: its name, logo, colours, legal links, languages and some
// texts of its own.
//
// A branding drives the hosted pages, the console and the mails of the tenant. Pages have one design,
// whose colours are custom properties of CSS; a branding sets some of them ([Branding.Style]). It has
// no HTML, CSS or SVG: colours are six hexadecimal digits, logos are pictures that were decoded and
// encoded again ([Decode]), and texts are lines.
//
// Colours must be readable (WCAG 2.2, success criteria 1.4.3 and 1.4.11): one with too little contrast
// is refused ([Branding.Contrasts]).
//
// The row of the tenant has a mark, a hash of the branding; it is empty without one. Every request has
// the row of its tenant, so a tenant without a branding costs nothing, and what is cached by its mark
// is never stale.
package branding
