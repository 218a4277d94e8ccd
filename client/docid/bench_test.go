package docid_test

import (
	"testing"

	"github.com/idnode/idnode/client/docid"
)

func BenchmarkParse(b *testing.B) {
	for name, template := range map[string]string{
		"guid": "", "server-side": "users/", "identity": "users|", "semantic": "users/ayende@example.org", "cyrillic": "каталог/",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := docid.Parse(template, "/"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkFold(b *testing.B) {
	for name, s := range map[string]string{
		"folded": "users/ayende@example.org", "ascii": "Users/ayende@example.org", "folded-cyrillic": "каталог/имя", "cyrillic": "Каталог/Имя",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				docid.Fold(s)
			}
		})
	}
}

func BenchmarkServerSideID(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		docid.ServerSideID("users/", 1<<40, "A")
	}
}

func BenchmarkIdentityID(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		docid.IdentityID("users", "/", 1<<40)
	}
}

func BenchmarkSplitNumbered(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, _, _, ok := docid.SplitNumbered("companies/123456"); !ok {
			b.Fatal("the id is numbered")
		}
	}
}
