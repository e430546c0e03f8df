package branding

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math"
	"os"
	"strings"
	"testing"
)

// Vectors of the formula of WCAG 2.2, as published checkers give them.
func TestRatio(t *testing.T) {
	for pair, want := range map[[2]Color]float64{
		{"#000000", "#ffffff"}: 21, {"#777777", "#ffffff"}: 4.48, {"#767676", "#ffffff"}: 4.54, {"#ffff00", "#ffffff"}: 1.07,
		{"#2446c7", "#2446c7"}: 1, {"#ff0000", "#ffffff"}: 4, {"#0000ff", "#ffffff"}: 8.59,
	} {
		if a, b := Ratio(pair[0], pair[1]), Ratio(pair[1], pair[0]); math.Abs(a-want) > 0.005 || a != b {
			t.Errorf("%s on %s: %.3f and %.3f, want %.2f", pair[0], pair[1], a, b, want)
		}
	}
}

// The design is that of the pages, and passes its own checks.
func TestDesign(t *testing.T) {
	style, err := os.ReadFile("../../api/pages/assets/tokens.css")
	if err != nil {
		t.Fatal(err)
	}
	light, dark, found := strings.Cut(strings.ReplaceAll(string(style), "#fff;", "#ffffff;"), "@media")
	for scheme, text := range map[Scheme]string{Light: light, Dark: dark} {
		d := design[scheme]
		for name, c := range map[string]Color{"ground": d.ground, "card": d.card, "ink": d.ink, "soft": d.soft, "accent": d.accent} {
			if !found || !strings.Contains(text, "--"+name+": "+string(c)+";") {
				t.Errorf("%s: --%s is not %s", scheme, name, c)
			}
		}
		for _, c := range (Branding{}).Contrasts(scheme) {
			if !c.Sufficient() {
				t.Errorf("%+v", c)
			}
		}
	}
	if style := (Branding{}).Style(); style != "" {
		t.Error(style)
	}
}

// Every colour is accepted, or refused with a suggestion that is accepted. An accent of light pages can
// be read on dark ones.
func TestContrastFaults(t *testing.T) {
	accepted, refused := 0, 0
	for r := 0; r < 256; r += 51 {
		for g := 0; g < 256; g += 51 {
			for b := 0; b < 256; b += 51 {
				c := Color("#" + digits(r) + digits(g) + digits(b))
				for _, scheme := range Schemes {
					for _, of := range []Colors{{Accent: c}, {Background: c}} {
						own := Branding{Colors: map[Scheme]Colors{scheme: of}}
						err := own.Validate()
						if err == nil {
							accepted++
							for _, of := range Schemes {
								for _, contrast := range own.Contrasts(of) {
									if !contrast.Sufficient() {
										t.Fatalf("%v was accepted with %+v", own.Colors, contrast)
									}
								}
							}
							continue
						}
						refused++
						var invalid *InvalidError
						if !errors.As(err, &invalid) || len(invalid.Faults) != 1 || invalid.Faults[0].Code != "contrast_too_low" {
							t.Fatalf("%s: %v", c, err)
						}
						_, suggestion, ok := strings.Cut(invalid.Faults[0].Message, "the nearest colour with enough contrast is ")
						if !ok {
							t.Fatalf("%s: %v", c, err)
						}
						if of.Accent != "" {
							of.Accent = Color(suggestion)
						} else {
							of.Background = Color(suggestion)
						}
						if err := (Branding{Colors: map[Scheme]Colors{scheme: of}}).Validate(); err != nil {
							t.Fatalf("the suggestion %s for %s: %v", suggestion, c, err)
						}
					}
				}
			}
		}
	}
	if accepted < 50 || refused < 50 {
		t.Errorf("%d accepted, %d refused", accepted, refused)
	}
	err := Branding{Colors: map[Scheme]Colors{Light: {Accent: "#ffee00"}}}.Validate()
	want := "colors/light/accent has too little contrast: #ffee00 on #ffffff has 1.20:1 (accent on card), and 4.5:1 is required; the nearest colour with enough contrast is #"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Error(err)
	}
	both := Branding{Colors: map[Scheme]Colors{Light: {Accent: "#ffffff", Background: "#000000"}}}
	if invalid := (*InvalidError)(nil); !errors.As(both.Validate(), &invalid) || len(invalid.Faults) != 2 {
		t.Error(invalid)
	}
}

func digits(n int) string { return string([]byte{"0123456789abcdef"[n>>4], "0123456789abcdef"[n&15]}) }

// A tenant without a branding costs no statement.
func TestNone(t *testing.T) {
	if b, err := new(Registry).Of(t.Context(), "tnt_a", ""); err != nil || b.Look("Acme", "") != (Look{Name: "Acme"}) {
		t.Errorf("%+v, %v", b, err)
	}
}

func TestStyle(t *testing.T) {
	b := Branding{Colors: map[Scheme]Colors{Light: {Accent: "#0b5d3b", Background: "#fafafa"}}}
	want := ":root { --accent: #0b5d3b; --accent-ink: #ffffff; --ground: #fafafa; }\n" +
		"@media (prefers-color-scheme: dark) { :root { --ground: #0e1015; } }\n" +
		"@media (prefers-color-scheme: dark) { :root { --accent: #"
	if got := b.Style(); !strings.HasPrefix(got, want) || strings.Count(got, "{") != strings.Count(got, "}") {
		t.Error(got)
	}
}

func TestValidate(t *testing.T) {
	for field, b := range map[string]Branding{
		"display_name":           {DisplayName: "two\nlines"},
		"display_name ":          {DisplayName: strings.Repeat("x", MaxName+1)},
		"colors/light/accent":    {Colors: map[Scheme]Colors{Light: {Accent: "red"}}},
		"colors/dark/accent":     {Colors: map[Scheme]Colors{Dark: {Accent: "#fff"}}},
		"colors/light/accent ":   {Colors: map[Scheme]Colors{Light: {Accent: "#ffffff}*{"}}},
		"links/terms_url":        {Links: Links{Terms: "http://example.com/"}},
		"links/privacy_url":      {Links: Links{Privacy: "javascript:alert(1)"}},
		"links/imprint_url":      {Links: Links{Imprint: "https://ann:secret@example.com/"}},
		"links/support_url":      {Links: Links{Support: "https://example.com/\r\nX: y"}},
		"links/support_url ":     {Links: Links{Support: "https://example.com/" + strings.Repeat("x", 2048)}},
		"links/support_email":    {Links: Links{SupportEmail: "ann@example.com?bcc=eve@example.com"}},
		"links/support_email ":   {Links: Links{SupportEmail: "Ann <ann@example.com>"}},
		"languages":              {Languages: []string{"en", "tlh"}},
		"default_language":       {Languages: []string{"de", "fr"}, DefaultLanguage: "en"},
		"texts":                  {Texts: map[string]map[TextName]string{"tlh": {SignInTitle: "x"}}},
		"texts/de":               {Texts: map[string]map[TextName]string{"de": {"footer": "x"}}},
		"texts/de/sign_in_text":  {Texts: map[string]map[TextName]string{"de": {SignInText: "a\u2028b"}}},
		"texts/de/sign_up_title": {Texts: map[string]map[TextName]string{"de": {SignUpTitle: strings.Repeat("x", MaxTitle+1)}}},
	} {
		var invalid *InvalidError
		if !errors.As(b.Validate(), &invalid) || len(invalid.Faults) != 1 || invalid.Faults[0].Field != strings.TrimSpace(field) {
			t.Errorf("%+v: %v", b, b.Validate())
		}
	}
	good := Branding{
		DisplayName: "Acme & Söhne <b>", Links: Links{Terms: "https://example.com/terms?a=b", SupportEmail: "help@example.com"},
		Languages: []string{"de", "fr"}, DefaultLanguage: "fr", Texts: map[string]map[TextName]string{"de": {SignInTitle: "Willkommen"}},
	}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for preference, want := range map[string]string{"": "fr", "en": "fr", "de-AT": "de", "ja,fr": "fr"} {
		if got := good.Language(preference).Tag(); got != want {
			t.Errorf("%s: %s, want %s", preference, got, want)
		}
	}
}

// picture returns a picture of some size.
func picture(width, height int) *image.NRGBA {
	p := image.NewNRGBA(image.Rect(0, 0, width, height))
	for x := range width {
		for y := range height {
			p.Set(x, y, color.NRGBA{uint8(x), uint8(y), 200, uint8(255 - x%2)})
		}
	}
	return p
}

func pngOf(t testing.TB, p image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestDecode(t *testing.T) {
	const script = "<script>alert(1)</script>"
	small := pngOf(t, picture(300, 100))
	var photo bytes.Buffer
	if err := jpeg.Encode(&photo, picture(300, 100), nil); err != nil {
		t.Fatal(err)
	}
	// A WebP of one colour, 16 × 16, lossless.
	webp := []byte("\x52\x49\x46\x46\x1a\x00\x00\x00\x57\x45\x42\x50\x56\x50\x38\x4c\x0d\x00\x00\x00\x2f\x0f\xc0\x03\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00")
	comment := append([]byte{0xff, 0xd8, 0xff, 0xfe, 0, byte(len(script) + 2)}, script...)
	for name, upload := range map[string][]byte{
		"PNG": small, "JPEG": photo.Bytes(), "WebP": webp,
		"a script after the picture":  append(bytes.Clone(small), script...),
		"a script in its metadata":    append(comment, photo.Bytes()[2:]...),
		"a text chunk in a PNG":       append(bytes.Clone(small[:33]), append(chunk("tEXt", []byte("Comment\x00"+script)), small[33:]...)...),
		"a picture that is too large": pngOf(t, image.NewGray(image.Rect(0, 0, 2048, 1024))),
	} {
		logo, icon, err := Decode(bytes.NewReader(upload))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, p := range []Picture{logo, icon} {
			decoded, err := png.Decode(bytes.NewReader(p.Data))
			if err != nil || decoded.Bounds() != image.Rect(0, 0, p.Width, p.Height) || max(p.Width, p.Height) > storedSide || bytes.Contains(p.Data, []byte("script")) || len(p.Hash) != 32 {
				t.Errorf("%s: %v %v", name, p.Logo, err)
			}
		}
		if icon.Width != iconSide || icon.Height != iconSide {
			t.Errorf("%s: the icon has %v", name, icon.Logo)
		}
	}
	bomb := bytes.Clone(small)
	binary.BigEndian.PutUint32(bomb[16:], 60_000)
	binary.BigEndian.PutUint32(bomb[20:], 60_000)
	binary.BigEndian.PutUint32(bomb[29:], crc32.ChecksumIEEE(bomb[12:29]))
	scans := append(bytes.Clone(photo.Bytes()[:20]), bytes.Repeat([]byte{0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0}, 200)...)
	for name, refused := range map[string]struct {
		upload []byte
		code   string
	}{
		"nothing":                     {nil, "picture_invalid"},
		"SVG":                         {[]byte(`<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`), "picture_invalid"},
		"HTML":                        {[]byte("<!doctype html>" + script), "picture_invalid"},
		"a page that begins as a GIF": {[]byte("GIF89a/*<html>*/"), "picture_invalid"},
		"a page that begins as a PNG": {append(bytes.Clone(small[:8]), script...), "picture_invalid"},
		"a picture that is cut off":   {small[:len(small)/2], "picture_invalid"},
		"a decompression bomb":        {bomb, "picture_size_invalid"},
		"many scans":                  {scans, "picture_invalid"},
		"one pixel":                   {pngOf(t, picture(1, 1)), "picture_size_invalid"},
		"a picture of 2,049 pixels":   {pngOf(t, picture(2049, 16)), "picture_size_invalid"},
		"a file of more than 512 KiB": {append(bytes.Clone(small), make([]byte, MaxUpload)...), "picture_invalid"},
	} {
		_, _, err := Decode(bytes.NewReader(refused.upload))
		var p *PictureError
		if !errors.As(err, &p) || p.Code != refused.code {
			t.Errorf("%s: %v, want %s", name, err, refused.code)
		}
	}
	// The scans are counted before they are decoded.
	if _, _, err := Decode(bytes.NewReader(scans)); err == nil || err.Error() != "the picture has more than 100 scans" {
		t.Errorf("many scans: %v", err)
	}
}

// A dark logo alone is shown on all pages.
func TestLook(t *testing.T) {
	b := Branding{Logos: map[Variant]Logo{DarkLogo: {Hash: "00"}}}
	if l := b.Look("Acme", "mark"); l.Logo != b.Path(DarkLogo) || l.DarkLogo != "" || l.Icon != "" {
		t.Errorf("%+v", l)
	}
	b.Logos[LightLogo] = Logo{Hash: "11"}
	if l := b.Look("Acme", "mark"); l.Logo != b.Path(LightLogo) || l.DarkLogo != b.Path(DarkLogo) {
		t.Errorf("%+v", l)
	}
}

func chunk(kind string, data []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	b = append(append(b, kind...), data...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}
