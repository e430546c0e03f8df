//go:build !unix

package arena

import (
	"errors"
	"os"
)

func createUnnamed(string) (*os.File, error) { return nil, errors.ErrUnsupported }

type mappings struct{}

func (*mappings) add(*os.File, int64, int) ([]byte, error) { return nil, errors.ErrUnsupported }
func (*mappings) addAnonymous(int) ([]byte, error)         { return nil, errors.ErrUnsupported }
func (*mappings) unmap()                                   {}

func leavesFree(*os.File, uint64, uint64) error { return errors.ErrUnsupported }
func reserve(*os.File, int64, int64) error      { return errors.ErrUnsupported }
