package branding

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg" // [image.Decode]
	"image/png"
	"io"

	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp" // [image.Decode]
)

// The bounds of an uploaded picture.
const (
	MaxUpload  = 512 << 10 // bytes
	maxSide    = 2048      // pixels; 16 MiB if it is decoded, or 32 MiB with 16 bits a channel
	leastSide  = 16
	storedSide = 512 // to which a larger picture is scaled down
	iconSide   = 32
	// maxScans bounds the scans of a progressive JPEG. Each can have some tens of bytes and takes as long
	// as a decoded picture.
	maxScans = 100
)

// startOfScan is the marker of a scan of a JPEG, which its compressed data cannot contain.
var startOfScan = []byte{0xff, 0xda}

// PictureError is returned for an upload that is no picture that can be a logo.
type PictureError struct{ Code, Message string }

func (e *PictureError) Error() string { return e.Message }

// Picture is a PNG picture.
type Picture struct {
	Logo
	Data []byte
}

// Decode reads a picture in PNG, JPEG or WebP and returns it as PNG. Decoding and encoding leaves nothing
// of the file but pixels: no metadata, and no bytes that are also a page or a script. The size is read
// before anything is decoded. SVG is refused, because it can contain scripts and load files. Decode
// fails with a [*PictureError], or as r does.
func Decode(r io.Reader) (logo, icon Picture, err error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxUpload+1))
	if err != nil {
		return logo, icon, err
	}
	if len(data) > MaxUpload {
		return logo, icon, &PictureError{"picture_invalid", fmt.Sprintf("the picture has more than %d bytes", MaxUpload)}
	}
	if bytes.Count(data, startOfScan) > maxScans {
		return logo, icon, &PictureError{"picture_invalid", fmt.Sprintf("the picture has more than %d scans", maxScans)}
	}
	config, format, err := image.DecodeConfig(bytes.NewReader(data))
	if errors.Is(err, image.ErrFormat) {
		return logo, icon, &PictureError{"picture_invalid", "the body is not a PNG, JPEG or WebP picture"}
	}
	if err != nil {
		return logo, icon, &PictureError{"picture_invalid", "the picture is damaged"}
	}
	if config.Width < leastSide || config.Height < leastSide || config.Width > maxSide || config.Height > maxSide {
		return logo, icon, &PictureError{"picture_size_invalid", fmt.Sprintf("the picture has %d × %d pixels; each side must have %d to %d", config.Width, config.Height, leastSide, maxSide)}
	}
	picture, decoded, err := image.Decode(bytes.NewReader(data))
	if err != nil || decoded != format || picture.Bounds().Dx() != config.Width || picture.Bounds().Dy() != config.Height {
		return logo, icon, &PictureError{"picture_invalid", "the picture is damaged"}
	}
	if logo, err = encode(scaled(picture, storedSide)); err != nil {
		return logo, icon, err
	}
	small := scaled(picture, iconSide)
	square := image.NewNRGBA(image.Rect(0, 0, iconSide, iconSide))
	offset := image.Pt((iconSide-small.Bounds().Dx())/2, (iconSide-small.Bounds().Dy())/2)
	draw.Draw(square, small.Bounds().Add(offset), small, image.Point{}, draw.Src)
	icon, err = encode(square)
	return logo, icon, err
}

// scaled returns a picture whose sides have at most some pixels.
func scaled(picture image.Image, most int) *image.NRGBA {
	from := picture.Bounds()
	width, height := from.Dx(), from.Dy()
	if longer := max(width, height); longer > most {
		width, height = max(1, width*most/longer), max(1, height*most/longer)
	}
	to := image.NewNRGBA(image.Rect(0, 0, width, height))
	draw.CatmullRom.Scale(to, to.Bounds(), picture, from, draw.Src, nil)
	return to
}

func encode(picture *image.NRGBA) (Picture, error) {
	var b bytes.Buffer
	if err := png.Encode(&b, picture); err != nil {
		return Picture{}, fmt.Errorf("encode picture: %w", err)
	}
	sum := sha256.Sum256(b.Bytes())
	return Picture{Logo{hex.EncodeToString(sum[:16]), picture.Bounds().Dx(), picture.Bounds().Dy()}, b.Bytes()}, nil
}
