package branding

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
)

// Color is a colour of sRGB, as # and six hexadecimal digits in lower case. The empty one is that of
// the design.
type Color string

var colorPattern = regexp.MustCompile(`^#[0-9a-f]{6}$`)

// channels returns red, green and blue, of 0 to 255.
func (c Color) channels() [3]float64 {
	n, err := strconv.ParseUint(string(c[1:]), 16, 32)
	if err != nil {
		panic("branding: a colour that was not validated: " + string(c))
	}
	return [3]float64{float64(n >> 16), float64(n >> 8 & 0xff), float64(n & 0xff)}
}

// luminance is the relative luminance of a colour (WCAG 2.2), from 0 to 1.
func (c Color) luminance() float64 {
	sum := 0.0
	for i, channel := range c.channels() {
		v := channel / 255
		if v <= 0.04045 {
			v /= 12.92
		} else {
			v = math.Pow((v+0.055)/1.055, 2.4)
		}
		sum += v * [3]float64{0.2126, 0.7152, 0.0722}[i]
	}
	return sum
}

// Ratio is the contrast ratio of two colours (WCAG 2.2), from 1 to 21.
func Ratio(a, b Color) float64 {
	x, y := a.luminance(), b.luminance()
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// ink returns black or white, which has more contrast with a colour. That is always at least 4.58.
func (c Color) ink() Color {
	if Ratio(c, "#000000") > Ratio(c, "#ffffff") {
		return "#000000"
	}
	return "#ffffff"
}

// mix returns the colour between two, at a share of the second of share/255.
func (c Color) mix(with Color, share int) Color {
	a, b := c.channels(), with.channels()
	var n [3]int
	for i := range n {
		n[i] = int(math.Round(a[i] + (b[i]-a[i])*float64(share)/255))
	}
	return Color(fmt.Sprintf("#%02x%02x%02x", n[0], n[1], n[2]))
}

// nearest returns the colour between this one and black, or white, that satisfies a condition with
// the least change. ok is false if there is none.
func (c Color) nearest(satisfies func(Color) bool) (_ Color, ok bool) {
	for share := range 256 {
		for _, end := range []Color{"#000000", "#ffffff"} {
			if mixed := c.mix(end, share); satisfies(mixed) {
				return mixed, true
			}
		}
	}
	return "", false
}
