package client

import "iter"

// pageSize is the number of items of a listing requested at a time.
const pageSize = 1000

// pages yields the items of all pages, and the first error as the last element. get returns
// one page and the token of the next, which is empty at the end.
func pages[T any](get func(token string) ([]T, string, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for token, more := "", true; more; more = token != "" {
			page, next, err := get(token)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range page {
				if !yield(item, nil) {
					return
				}
			}
			token = next
		}
	}
}
