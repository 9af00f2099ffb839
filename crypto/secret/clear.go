package secret

import (
	"reflect"
	"unsafe"
)

// Clear overwrites with zeros the object that x, a pointer or an interface that holds
// one, points at, and reports whether it cleared all of it. It is for the ciphers and
// hashes of the standard library, which keep their keys in fields that only they can
// reach. The object must not be used afterwards.
//
// Fields that are or contain pointers are left as they are, and so is what they
// point at, which may belong to others as well: Clear then reports false.
func Clear(x any) bool {
	v := reflect.ValueOf(x)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return false
	}
	return clearPlain(v.Elem().Type(), v.UnsafePointer())
}

// clearPlain clears what is free of pointers in a value of type t at p.
func clearPlain(t reflect.Type, p unsafe.Pointer) bool {
	if plain(t) {
		clear(unsafe.Slice((*byte)(p), t.Size()))
		return true
	}
	whole := t.Kind() == reflect.Struct || t.Kind() == reflect.Array
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			whole = clearPlain(f.Type, unsafe.Add(p, f.Offset)) && whole
		}
	case reflect.Array:
		for i := range t.Len() {
			whole = clearPlain(t.Elem(), unsafe.Add(p, uintptr(i)*t.Elem().Size())) && whole
		}
	}
	return whole
}

// plain reports whether values of type t contain no pointers.
func plain(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			if !plain(t.Field(i).Type) {
				return false
			}
		}
		return true
	case reflect.Array:
		return plain(t.Elem())
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return true
	}
	return false
}
