package tools

import (
	"correx/pkg/events"
)

// An Exemplar is a tool that knows more calls than [Tool.Example]: two, with other
// names and words, for each kind of thing that people ask of it. Those that
// resemble a task are shown to the model that is to do it; small models do what
// they are shown, and see by the second one what changes from task to task.
// Answers quote what a tool said: to copy is what small models do best.
type Exemplar interface {
	Examples() []events.ToolExample
}

func example(task, parameters, result, answer string) events.ToolExample {
	return events.ToolExample{Task: task, Parameters: events.Raw(parameters), Result: result, Answer: answer}
}

// Examples implements [Exemplar].
func (*FileWriteTool) Examples() []events.ToolExample {
	return []events.ToolExample{
		example("Write two eggs to list.md.", `{"operation":"write","path":"list.md","content":"two eggs"}`, "wrote list.md", "I wrote two eggs to list.md."),
		example("Create the file work/b.txt with the text Start here.", `{"operation":"write","path":"work/b.txt","content":"Start here"}`, "wrote work/b.txt", "I created work/b.txt with the text Start here."),
		example("Create plan.md with the text Go home.", `{"operation":"write","path":"plan.md","content":"Go home"}`, "wrote plan.md", "I created plan.md with the text Go home."),
		example("Save the number 12 in c.txt.", `{"operation":"write","path":"c.txt","content":"12"}`, "wrote c.txt", "The number 12 is saved in c.txt."),
		example("Save the name Eve in user.txt.", `{"operation":"write","path":"user.txt","content":"Eve"}`, "wrote user.txt", "The name Eve is saved in user.txt."),
		example("Delete the file work/d.txt.", `{"operation":"delete","path":"work/d.txt"}`, "deleted work/d.txt", "The file work/d.txt is deleted."),
		example("Delete tmp.csv.", `{"operation":"delete","path":"tmp.csv"}`, "deleted tmp.csv", "tmp.csv is deleted."),
	}
}

// Examples implements [Exemplar].
func (*FileEditTool) Examples() []events.ToolExample {
	return []events.ToolExample{
		example("Append the line Third: gamma to work/a.txt.", `{"operation":"append","path":"work/a.txt","content":"Third: gamma\n"}`, "appended 13 bytes to work/a.txt", "The line Third: gamma is appended to work/a.txt."),
		example("Append milk to list.md.", `{"operation":"append","path":"list.md","content":"milk\n"}`, "appended 5 bytes to list.md", "I appended milk to list.md."),
		example("Add delta at the end of c.txt.", `{"operation":"append","path":"c.txt","content":"delta\n"}`, "appended 6 bytes to c.txt", "I added delta to c.txt."),
		example("Replace up with down in state.cfg.", `{"operation":"replace","path":"state.cfg","target":"up","replacement":"down"}`, "replaced it in state.cfg", "In state.cfg, up is down now."),
		example("Change Anna to Eve in user.txt.", `{"operation":"replace","path":"user.txt","target":"Anna","replacement":"Eve"}`, "replaced it in user.txt", "In user.txt, Anna is Eve now."),
	}
}

// Examples implements [Exemplar].
func (*FileReadTool) Examples() []events.ToolExample {
	return []events.ToolExample{
		example("Read list.md.", `{"operation":"read","path":"list.md"}`, "two eggs\n", "list.md says: two eggs."),
		example("What is in work/k.txt?", `{"operation":"read","path":"work/k.txt"}`, "The key is under the mat.\n", "work/k.txt says: The key is under the mat."),
		example("What is in user.txt?", `{"operation":"read","path":"user.txt"}`, "Eve\n", "user.txt says: Eve."),
		example("Read c.txt and tell me the name of the dog.", `{"operation":"read","path":"c.txt"}`, "The dog is called Rex.\n", "c.txt says: The dog is called Rex."),
		example("Look into work/size.txt and say how tall the tower is.", `{"operation":"read","path":"work/size.txt"}`, "tower: 80 m\n", "work/size.txt says: tower: 80 m."),
		example("When does the train leave, according to train.txt?", `{"operation":"read","path":"train.txt"}`, "Leaves at 9:15.\n", "train.txt says: Leaves at 9:15."),
		example("Who has the key? It is in the file key.md.", `{"operation":"read","path":"key.md"}`, "Tom has it.\n", "key.md says: Tom has it."),
		example("Which street is it, according to map.md?", `{"operation":"read","path":"map.md"}`, "Take Mill Lane.\n", "map.md says: Take Mill Lane."),
		example("Where is the hut? It is in the file hut.md.", `{"operation":"read","path":"hut.md"}`, "The hut is in the wood.\n", "hut.md says: The hut is in the wood."),
		example("Is there a file called work/a.txt?", `{"operation":"exists","path":"work/a.txt"}`, "true", "Yes, there is a file called work/a.txt."),
		example("Is there a file list.md?", `{"operation":"exists","path":"list.md"}`, "false", "No, there is no file list.md."),
		example("Which files are in the directory work?", `{"operation":"list","path":"work"}`, "a.txt (file, 5 bytes)\nb.txt (file, 2 bytes)\n", "In work are: a.txt (file, 5 bytes), b.txt (file, 2 bytes)."),
		example("Which files are here?", `{"operation":"list","path":"."}`, "list.md (file, 9 bytes)\nwork/ (directory)\n", "Here are: list.md (file, 9 bytes), work/ (directory)."),
		example("Which files are in img?", `{"operation":"list","path":"img"}`, "cat.png (file, 900 bytes)\n", "In img are: cat.png (file, 900 bytes)."),
	}
}

// Examples implements [Exemplar]: those of programs that are allowed.
func (t *ShellTool) Examples() []events.ToolExample {
	var out []events.ToolExample
	for _, e := range []events.ToolExample{
		example("Print the word alpha with echo.", `{"argv":["echo","alpha"]}`, "alpha\n", "The program printed alpha."),
		example("Print Good luck with echo.", `{"argv":["echo","Good luck"]}`, "Good luck\n", "The program printed Good luck."),
		example("List the files with the program ls.", `{"argv":["ls"]}`, "a.txt\nb.txt\n", "The files are: a.txt, b.txt."),
		example("List the files in work/ with ls.", `{"argv":["ls","work/"]}`, "d.txt\n", "The files are: d.txt."),
		example("Show c.txt with the program cat.", `{"argv":["cat","c.txt"]}`, "gamma\n", "c.txt says gamma."),
		example("Show user.txt with cat.", `{"argv":["cat","user.txt"]}`, "Eve\n", "user.txt says Eve."),
		example("Count the lines of c.txt with wc.", `{"argv":["wc","-l","c.txt"]}`, "12 c.txt\n", "c.txt has 12 lines."),
		example("Count the words of list.md with wc.", `{"argv":["wc","-w","list.md"]}`, "31 list.md\n", "list.md has 31 words."),
		example("Use grep to find alpha in c.txt.", `{"argv":["grep","alpha","c.txt"]}`, "my alpha\n", "The line with alpha is: my alpha."),
		example("Find milk in list.md with grep.", `{"argv":["grep","milk","list.md"]}`, "milk: 2\n", "The line with milk is: milk: 2."),
		example("Sort c.txt with sort.", `{"argv":["sort","c.txt"]}`, "alpha\nbeta\n", "Sorted, it is alpha, beta."),
		example("Run sort on user.txt.", `{"argv":["sort","user.txt"]}`, "Ann\nEve\n", "Sorted, it is Ann, Eve."),
		example("How many lines has list.md?", `{"argv":["wc","-l","list.md"]}`, "31 list.md\n", "list.md has 31 lines."),
		example("How many words has c.txt?", `{"argv":["wc","-w","c.txt"]}`, "7 c.txt\n", "c.txt has 7 words."),
		example("Show the first 3 lines of c.txt with head.", `{"argv":["head","-n","3","c.txt"]}`, "a\nb\nc\n", "The first lines are: a, b, c."),
		example("Show the last 2 lines of c.txt with tail.", `{"argv":["tail","-n","2","c.txt"]}`, "y\nz\n", "The last lines are: y, z."),
		example("What time is it?", `{"argv":["date"]}`, "Fri Apr  3 09:30:00 UTC 2026\n", "It is Fri Apr  3 09:30:00 UTC 2026."),
		example("What is the date of today?", `{"argv":["date"]}`, "Mon May  4 12:00:00 UTC 2026\n", "It is Mon May  4 12:00:00 UTC 2026."),
	} {
		if _, err := t.parse(events.ToolRequest{Parameters: e.Parameters}); err == nil {
			out = append(out, e)
		}
	}
	return out
}
