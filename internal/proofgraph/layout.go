package proofgraph

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Graph is a picture with places, in layers from left to right (Sugiyama et al., Methods for Visual
// Understanding of Hierarchical System Structures, 1981).
type Graph struct {
	Width, Height int
	Boxes         []*box
	Lines         []*line
}

// Sizes in pixels.
const (
	letter    = 8  // the width of a letter
	wide      = 34 // letters of a title that are shown
	gap       = 90 // between layers, besides their labels
	labelled  = 6  // the width of a letter of a label
	between   = 22 // boxes of a layer
	margin    = 12
	setHeight = 48
	height    = 34 // of other boxes
)

// LayOut places the boxes.
func (p *Picture) LayOut() *Graph {
	layers := p.layers()
	g := &Graph{}
	for range 4 {
		for i := 1; i < len(layers); i++ {
			p.sort(layers[i], true)
		}
		for i := len(layers) - 2; i >= 0; i-- {
			p.sort(layers[i], false)
		}
	}
	labels := make([]int, len(layers)) // the longest after each layer
	for _, l := range p.lines {
		labels[l.from.layer] = max(labels[l.from.layer], min(wide, utf8.RuneCountInString(l.Label)))
	}
	x, space := margin, 0
	for i, layer := range layers {
		width, y := 0, margin
		for _, b := range layer {
			b.X, b.Y = x, y
			y += b.H + between
			width = max(width, b.W)
		}
		g.Height = max(g.Height, y-between+margin)
		space = gap + labels[i]*labelled
		x += width + space
	}
	g.Width = x - space + margin
	for _, layer := range layers { // centred
		last := layer[len(layer)-1]
		shift := (g.Height - margin - last.Y - last.H) / 2
		for _, b := range layer {
			b.Y += shift
		}
	}
	for _, l := range p.lines {
		l.route()
	}
	// The proof is drawn last, above other lines.
	slices.SortStableFunc(p.lines, func(a, b *line) int {
		return rank(a) - rank(b)
	})
	g.Boxes, g.Lines = p.order, p.lines
	return g
}

func rank(l *line) int {
	if l.Arrow() == "proof" {
		return 1
	}
	return 0
}

// layers divides the boxes into layers, so that each line leads to a later one, except those that
// close a cycle, and adds bends to lines that skip layers.
func (p *Picture) layers() (layers [][]*box) {
	out := map[*box][]*line{}
	for _, l := range p.lines {
		out[l.from] = append(out[l.from], l)
	}
	const underway, done = 1, 2
	state := map[*box]int{}
	back := map[*line]bool{}
	var sorted []*box
	var visit func(*box)
	visit = func(b *box) {
		state[b] = underway
		for _, l := range out[b] {
			switch state[l.to] {
			case 0:
				visit(l.to)
			case underway:
				back[l] = true
			}
		}
		state[b] = done
		sorted = append(sorted, b)
	}
	for _, b := range p.order {
		if state[b] == 0 {
			visit(b)
		}
	}
	slices.Reverse(sorted)
	last := 0
	for _, b := range sorted {
		for _, l := range out[b] {
			if !back[l] {
				l.to.layer = max(l.to.layer, b.layer+1)
				last = max(last, l.to.layer)
			}
		}
	}
	layers = make([][]*box, last+1)
	for _, b := range p.order {
		letters := max(utf8.RuneCountInString(b.Title), utf8.RuneCountInString(b.Sub))
		b.W, b.H = min(letters, wide)*letter+28, height
		if b.Sub != "" {
			b.H = setHeight
		}
		layers[b.layer] = append(layers[b.layer], b)
	}
	for _, l := range p.lines {
		for i := l.from.layer + 1; i < l.to.layer; i++ {
			bend := &box{layer: i, H: 2, bend: true}
			l.via = append(l.via, bend)
			layers[i] = append(layers[i], bend)
		}
	}
	return layers
}

// sort sorts a layer by the middle of the neighbours in the layer before, or after.
func (p *Picture) sort(layer []*box, before bool) {
	place := map[*box]int{}
	sum, count := map[*box]int{}, map[*box]int{}
	for _, l := range p.lines {
		chain := append(append([]*box{l.from}, l.via...), l.to)
		for i := 0; i+1 < len(chain); i++ {
			near, far := chain[i+1], chain[i]
			if !before {
				near, far = far, near
			}
			if near.layer == layer[0].layer {
				sum[near] += far.index
				count[near]++
			}
		}
	}
	for i, b := range layer {
		place[b] = i
		b.middle = float64(i)
		if count[b] > 0 {
			b.middle = float64(sum[b]) / float64(count[b])
		}
	}
	slices.SortStableFunc(layer, func(a, b *box) int {
		switch {
		case a.middle < b.middle:
			return -1
		case a.middle > b.middle:
			return 1
		}
		return place[a] - place[b]
	})
	for i, b := range layer {
		b.index = i
	}
}

// route draws a line from box to box, through its bends.
func (l *line) route() {
	x, y := l.from.X+l.from.W, l.from.Y+l.from.H/2
	var path strings.Builder
	fmt.Fprintf(&path, "M%d %d", x, y)
	for i, b := range append(slices.Clone(l.via), l.to) {
		toX, toY := b.X, b.Y+b.H/2
		if i == len(l.via) {
			toX -= 8 // the arrow
		}
		half := max(40, (toX-x)/2)
		fmt.Fprintf(&path, " C%d %d %d %d %d %d", x+half, y, toX-half, toY, toX, toY)
		if i == 0 {
			l.LabelX, l.LabelY = (x+toX)/2, (y+toY)/2-5
		}
		x, y = toX, toY
	}
	l.Path = path.String()
}

// Arrow returns the name of the tip of the line.
func (l *line) Arrow() string {
	for _, name := range []string{"proof", "except"} {
		if strings.HasPrefix(l.Class, name) {
			return name
		}
	}
	return "plain"
}

// Short returns the title as far as there is room for it.
func (b *box) Short() string {
	runes := []rune(b.Title)
	if len(runes) <= wide {
		return b.Title
	}
	return string(runes[:wide-1]) + "…"
}

// Middle returns the horizontal middle of the box.
func (b *box) Middle() int { return b.X + b.W/2 }

// Baseline returns the vertical place of the title.
func (b *box) Baseline() int {
	if b.Sub != "" {
		return b.Y + 21
	}
	return b.Y + b.H/2 + 5
}

// SubBaseline returns the vertical place of the second line.
func (b *box) SubBaseline() int { return b.Y + 39 }

// Round returns the radius of the corners.
func (b *box) Round() int {
	if b.Kind == "set" {
		return 9
	}
	return b.H / 2
}
