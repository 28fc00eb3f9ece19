package sandbox

// Stage has nothing left to do: package stage does its work before main.
func Stage() {}
