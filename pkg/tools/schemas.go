package tools

import "correx/pkg/events"

// The schemas of the built-in tools. Properties stand in the order in which a
// model writes them: first what it does, then to what, then with what.
//
// An operation that needs other parameters than its neighbours has a branch of
// its own, so that a model that is held to the schema cannot leave one out.
var (
	echoSchema = events.Raw(`{"type":"object","properties":{` +
		`"text":{"type":"string","maxLength":2000,"description":"what to answer"}` +
		`},"required":["text"],"additionalProperties":false}`)

	fileReadSchema = events.Raw(`{"type":"object","oneOf":[` +
		`{"type":"object","properties":{"operation":{"type":"string","enum":["read","list"],"description":"read a file, or list a directory"},` + pathProperty +
		`,"offset":{"type":"integer","minimum":1,"maximum":9999999,"description":"first line, counted from 1"}` +
		`,"limit":{"type":"integer","minimum":1,"maximum":9999999,"description":"how many lines"}` +
		`},"required":["operation","path"],"additionalProperties":false},` +
		`{"type":"object","properties":{"operation":{"type":"string","enum":["exists","stat"],"description":"whether something exists, or what it is"},` + pathProperty +
		`},"required":["operation","path"],"additionalProperties":false}]}`)

	fileWriteSchema = events.Raw(`{"type":"object","oneOf":[` +
		`{"type":"object","properties":{"operation":{"type":"string","enum":["write"]},` + pathProperty + `,` + contentProperty +
		`},"required":["operation","path","content"],"additionalProperties":false},` +
		`{"type":"object","properties":{"operation":{"type":"string","enum":["delete","mkdir"],"description":"delete a file, or make a directory"},` + pathProperty +
		`},"required":["operation","path"],"additionalProperties":false}]}`)

	fileEditSchema = events.Raw(`{"type":"object","oneOf":[` + editBranches + `]}`)

	fileEditPatchSchema = events.Raw(`{"type":"object","oneOf":[` + editBranches +
		`,{"type":"object","properties":{"operation":{"type":"string","enum":["patch"]}` +
		`,"patch":{"type":"string","minLength":1,"maxLength":2000,"description":"a unified diff: --- name, +++ name, @@ -line,count +line,count @@, and lines that begin with a blank, - or +"}` +
		`},"required":["operation","patch"],"additionalProperties":false}]}`)
)

const (
	pathProperty    = `"path":{"type":"string","minLength":1,"maxLength":512,"description":"relative to the workspace, or absolute"}`
	contentProperty = `"content":{"type":"string","maxLength":2000}`

	editBranches = `` +
		`{"type":"object","properties":{"operation":{"type":"string","enum":["append"]},` + pathProperty + `,` + contentProperty +
		`},"required":["operation","path","content"],"additionalProperties":false},` +
		`{"type":"object","properties":{"operation":{"type":"string","enum":["replace"]},` + pathProperty +
		`,"target":{"type":"string","minLength":1,"maxLength":2000,"description":"text that occurs exactly once in the file"}` +
		`,"replacement":{"type":"string","maxLength":2000,"description":"what stands there instead"}` +
		`},"required":["operation","path","target","replacement"],"additionalProperties":false}`
)
