package service

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/server/apierror"
)

const (
	// DefaultPageSize is the length of a page if the caller names none.
	DefaultPageSize = 100
	// MaxPageSize is the length of the longest page.
	MaxPageSize = 1000
	// MaxSeriesPage is the length of the longest page of series, whatever is asked for: lists of
	// values may make a definition long.
	MaxSeriesPage = 500
)

// paged is a request of the API for a page.
type paged interface {
	GetPageSize() int32
	GetPageToken() string
}

// listRequest is a request of the API for a page of names, tags or ids.
type listRequest interface {
	paged
	GetDatabase() string
	GetPrefix() string
	GetConsistency() idnodev1.Consistency
}

// Page is one page of a listing, in order of folded names.
type Page[T any] struct {
	Items []T
	// NextPageToken is empty for the last page.
	NextPageToken string
	// LogIndex is the log index that the page is at least as new as; 0 for listings that are not
	// from the log.
	LogIndex uint64
}

// cursor is where a page begins, checked and folded.
type cursor struct {
	// scope is the listing that page tokens are bound to.
	scope            listing
	database, prefix string
	// after is the last name of the page before, or "".
	after string
	size  int
}

// listing identifies a listing in page tokens; its numbers never change.
type listing byte

const (
	listIdentities listing = 'i'
	listHiLo       listing = 'h'
	listClaims     listing = 'c'
	listMembers    listing = 'm'
	listDatabases  listing = 'd'
	listOwnEtags   listing = 'e'
	listReserves   listing = 'r'
	listSeries     listing = 's'
	listScopes     listing = 'o'
	listNumbers    listing = 'n'
	listVerified   listing = 'v'
	listPeriod     listing = 'y'
	listPools      listing = 'p'
	listWorkers    listing = 'w'
)

// longest is the length of a listing's longest page.
func (l listing) longest() int {
	if l == listSeries {
		return MaxSeriesPage
	}
	return MaxPageSize
}

const (
	tokenVersion = 1
	scopeBytes   = 8
	// maxKeyBytes bounds the last name in a page token; folding may lengthen a
	// name by half.
	maxKeyBytes = 2 * docid.MaxIDBytes
)

func newCursor(what listing, req listRequest) (cursor, error) {
	database, err := databaseKey(req.GetDatabase())
	if err != nil {
		return cursor{}, err
	}
	if err := checkPrefix(req.GetPrefix()); err != nil {
		return cursor{}, err
	}
	c := cursor{scope: what, database: database, prefix: docid.Fold(req.GetPrefix())}
	return c.at(int(req.GetPageSize()), req.GetPageToken())
}

// at returns the cursor with the size and the place of a request.
func (c cursor) at(size int, token string) (cursor, error) {
	items, err := upTo(MaxPageSize, int64(size), DefaultPageSize, apierror.ReasonInvalidPageSize, "page_size")
	if err != nil {
		return cursor{}, err
	}
	c.size = min(int(items), c.scope.longest())
	if c.after, err = c.parseToken(token); err != nil {
		return cursor{}, err
	}
	return c, nil
}

// hash binds a page token to its listing, so that a token of another listing is refused instead
// of leading anywhere.
func (c cursor) hash() (h [scopeBytes]byte) {
	b := []byte{byte(c.scope), byte(len(c.database))}
	b = append(b, c.database...)
	b = append(b, c.prefix...)
	sum := sha256.Sum256(b)
	copy(h[:], sum[:])
	return h
}

// token returns the page token that leads on behind last.
func (c cursor) token(last string) string {
	hash := c.hash()
	b := append([]byte{tokenVersion}, hash[:]...)
	return base64.RawURLEncoding.EncodeToString(append(b, last...))
}

func (c cursor) parseToken(token string) (string, error) {
	if token == "" {
		return "", nil
	}
	bad := errBadPageToken()
	if len(token) > base64.RawURLEncoding.EncodedLen(1+scopeBytes+maxKeyBytes) {
		return "", bad
	}
	if strings.ContainsAny(token, "\r\n") { // The decoder passes over them.
		return "", bad
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(b) <= 1+scopeBytes || b[0] != tokenVersion || [scopeBytes]byte(b[1:]) != c.hash() {
		return "", bad
	}
	last := string(b[1+scopeBytes:])
	if !utf8.ValidString(last) || !strings.HasPrefix(last, c.prefix) {
		return "", bad
	}
	return last, nil
}

func errBadPageToken() error {
	return apierror.Invalid(apierror.ReasonInvalidPageToken, "page_token", "the page token is not of this listing")
}

// cut takes a page off found, which has one element more than the page if there is a next page.
func cut[F, T any](c cursor, found []F, index uint64, shown func(F) (name string, item T)) Page[T] {
	page := Page[T]{Items: make([]T, min(len(found), c.size)), LogIndex: index}
	var last string
	for i := range page.Items {
		last, page.Items[i] = shown(found[i])
	}
	if len(found) > c.size {
		page.NextPageToken = c.token(last)
	}
	return page
}

func checkPrefix(prefix string) error {
	if len(prefix) > docid.MaxIDBytes || !utf8.ValidString(prefix) {
		return apierror.Invalid(apierror.ReasonInvalidPrefix, "prefix", "the prefix is not valid UTF-8 of at most %d bytes", docid.MaxIDBytes)
	}
	return nil
}
