package modelworker

import (
	"reflect"
	"testing"
	"testing/synctest"
	"time"
)

func TestTeller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []delta
		tell := newTeller(2, func(d delta) { told = append(told, d) })
		tell.reasoning("Hm")
		tell.reasoning("m.") // waits for its breath
		tell.text("He")
		tell.text("l")
		time.Sleep(breath / 2)
		tell.text("l")
		time.Sleep(breath)
		tell.text("o")
		synctest.Wait()
		tell.text("!")
		tell.end()
		tell.end()
		time.Sleep(time.Second)
		want := []delta{
			{Attempt: 2, Index: 0, Reasoning: "Hm"}, {Attempt: 2, Index: 1, Reasoning: "m."}, {Attempt: 2, Index: 2, Delta: "Hell"},
			{Attempt: 2, Index: 3, Delta: "o!"},
		}
		if !reflect.DeepEqual(told, want) {
			t.Errorf("told %+v, want %+v", told, want)
		}
	})
}
