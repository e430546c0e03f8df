package sqldb

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// CopyColumn is a column of rows to copy: TEXT or BIGINT.
type CopyColumn struct {
	Name  string
	Texts []string // one of these
	Ints  []int64
}

// insertMany implements pipeline.
func (p *litePipeline) insertMany(context.Context, string, []CopyColumn) error {
	return errors.New("SQLite does not copy")
}

// insertMany implements pipeline.
func (p *pgPipeline) insertMany(ctx context.Context, table string, columns []CopyColumn) error {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	sql := fmt.Sprintf("COPY %s (%s) FROM STDIN (FORMAT binary)", table, strings.Join(names, ", "))
	p.st.statements.Add(1)
	p.st.roundTrips.Add(1)
	if observe != nil {
		observe(sql)
	}
	_, err := p.conn.Conn().PgConn().CopyFrom(ctx, &copied{columns: columns, rows: max(len(columns[0].Texts), len(columns[0].Ints))}, sql)
	return err
}

// copied encodes rows as PostgreSQL documents for COPY in its binary format.
type copied struct {
	columns    []CopyColumn
	next, rows int
	begun      bool
	ready      []byte // and not read yet
	buffer     []byte
}

// Read implements [io.Reader].
func (c *copied) Read(p []byte) (int, error) {
	if len(c.ready) == 0 {
		c.buffer = c.buffer[:0]
		if !c.begun {
			c.begun = true
			c.buffer = append(c.buffer, "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"...) // without flags and extension
		}
		for ; c.next < c.rows && len(c.buffer) < len(p); c.next++ {
			c.buffer = binary.BigEndian.AppendUint16(c.buffer, uint16(len(c.columns)))
			for _, column := range c.columns {
				if column.Ints != nil {
					c.buffer = binary.BigEndian.AppendUint32(c.buffer, 8)
					c.buffer = binary.BigEndian.AppendUint64(c.buffer, uint64(column.Ints[c.next]))
					continue
				}
				c.buffer = binary.BigEndian.AppendUint32(c.buffer, uint32(len(column.Texts[c.next])))
				c.buffer = append(c.buffer, column.Texts[c.next]...)
			}
		}
		if c.next == c.rows {
			c.next++
			c.buffer = append(c.buffer, 0xff, 0xff)
		} else if len(c.buffer) == 0 {
			return 0, io.EOF
		}
		c.ready = c.buffer
	}
	n := copy(p, c.ready)
	c.ready = c.ready[n:]
	return n, nil
}
