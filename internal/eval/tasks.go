package main

// The tasks, six of each kind. They are written as people write, with names and
// words that no worked example has.

func tasks() []task {
	var list []task
	for _, of := range [][]task{fileTasks(), readingTasks(), programTasks(), stepTasks(), questionTasks(), recoveringTasks(), impossibleTasks(), longTasks()} {
		list = append(list, of...)
	}
	return list
}

func fileTasks() []task {
	return []task{
		{"write", files, nil, []string{"Write Buy milk and bread to shopping.txt."}, holds("shopping.txt", "Buy milk and bread")},
		{"create", files, nil, []string{"Create the file status/today.txt with the text All systems normal."}, holds("status/today.txt", "All systems normal")},
		{"delete", files, map[string]string{"old.log": "nothing", "new.log": "something"}, []string{"Delete the file old.log."}, all(gone("old.log"), untouched("new.log"))},
		{"append", files, map[string]string{"diary.txt": "Monday: rain\n"}, []string{"Append the line Tuesday: sun to diary.txt."},
			holds("diary.txt", "Monday: rain Tuesday: sun")},
		{"replace", files, map[string]string{"config.ini": "mode = slow\nport = 80\n"}, []string{"Replace slow with fast in config.ini."},
			all(holds("config.ini", "mode = fast port = 80"), lacks("config.ini", "slow"))},
		{"save", files, nil, []string{"Please save the number 4711 in pin.txt."}, holds("pin.txt", "4711")},
	}
}

func readingTasks() []task {
	return []task{
		{"colour", reading, map[string]string{"paint.txt": "The door is green.\n"}, []string{"Read paint.txt and tell me the colour of the door."}, all(answered("green"), unchanged)},
		{"what-is-in", reading, map[string]string{"docs/owner.txt": "Margaret\n"}, []string{"What is in the file docs/owner.txt?"}, all(answered("margaret"), unchanged)},
		{"meeting", reading, map[string]string{"calendar.txt": "Dentist on Friday at 10.\n"}, []string{"On which day is the dentist, according to calendar.txt?"}, all(answered("friday"), unchanged)},
		{"exists", reading, map[string]string{"here.txt": "x"}, []string{"Is there a file called here.txt?"}, all(answered("yes", "exists", "there is", "true"), says(true), unchanged)},
		{"list", reading, map[string]string{"box/apple.txt": "a", "box/pear.txt": "b"}, []string{"Which files are in the directory box?"}, all(answered("apple"), answered("pear"), unchanged)},
		{"version", reading, map[string]string{"VERSION": "7.3.1\n"}, []string{"Look into VERSION and say which version it is."}, all(answered("7 3 1"), unchanged)},
	}
}

func programTasks() []task {
	return []task{
		{"echo", programs, nil, []string{"Print the word harbour with echo."}, all(used("shell", "echo", "harbour"), unchanged)},
		{"ls", programs, map[string]string{"zebra.txt": ""}, []string{"List the files with ls."}, all(used("shell", "ls"), answered("zebra"), unchanged)},
		{"count-lines", programs, map[string]string{"names.txt": "Ann\nBob\nCy\nDee\n"}, []string{"Count the lines of names.txt with wc."}, all(used("shell", "wc", "names.txt"), answered("4"), unchanged)},
		{"cat", programs, map[string]string{"poem.txt": "Roses are red.\n"}, []string{"Show poem.txt with the program cat."}, all(used("shell", "cat", "poem.txt"), unchanged)},
		{"grep", programs, map[string]string{"log.txt": "ok\nerror: disk\nok\n"}, []string{"Use grep to find error in log.txt."}, all(used("shell", "grep", "error", "log.txt"), unchanged)},
		{"sort", programs, map[string]string{"fruit.txt": "plum\nfig\n"}, []string{"Run sort on fruit.txt."}, all(used("shell", "sort", "fruit.txt"), unchanged)},
	}
}

func stepTasks() []task {
	return []task{
		{"write-read", steps, nil, []string{"Write See you at noon to memo.txt and read it back."}, all(holds("memo.txt", "See you at noon"), used("file_read", "memo.txt"))},
		{"copy", steps, map[string]string{"first.txt": "Lighthouse\n"}, []string{"Read first.txt and write what it says to second.txt."},
			all(holds("second.txt", "Lighthouse"), untouched("first.txt"))},
		{"two-files", steps, nil, []string{"Write sun to a.txt and write moon to b.txt."}, all(holds("a.txt", "sun"), holds("b.txt", "moon"))},
		{"append-read", steps, map[string]string{"todo.txt": "wash\n"}, []string{"Append cook to todo.txt and then read todo.txt."},
			all(holds("todo.txt", "wash cook"), used("file_read", "todo.txt"))},
		{"write-list", steps, nil, []string{"Create report.md with the text Done, then list the files with ls."}, all(holds("report.md", "Done"), used("shell", "ls"))},
		{"replace-read", steps, map[string]string{"sign.txt": "OPEN\n"}, []string{"Replace OPEN with CLOSED in sign.txt and read it back."},
			all(holds("sign.txt", "CLOSED"), lacks("sign.txt", "OPEN"), used("file_read", "sign.txt"))},
	}
}

func questionTasks() []task {
	return []task{
		{"france", questions, nil, []string{"What is the capital of France?"}, all(answered("paris"), unchanged)},
		{"opposite", questions, nil, []string{"What is the opposite of hot?"}, all(answered("cold", "cool"), unchanged)},
		{"days", questions, nil, []string{"How many days has a week?"}, all(answered("7", "seven"), unchanged)},
		{"sky", questions, nil, []string{"Which colour has the sky on a clear day?"}, all(answered("blue"), unchanged)},
		{"hello", questions, nil, []string{"Say hello."}, all(answered("hello", "hi"), unchanged)},
		{"sum", questions, nil, []string{"What is 2 plus 2?"}, all(answered("4", "four"), unchanged)},
	}
}

func recoveringTasks() []task {
	return []task{
		{"wrong-name", recovering, map[string]string{"notice.txt": "The pool is closed.\n"}, []string{"Read notice.text and tell me what is closed."}, all(answered("pool"), unchanged)},
		{"wrong-directory", recovering, map[string]string{"letters/anna.txt": "Dear Anna, come to Oslo.\n"}, []string{"Read letter/anna.txt and say to which city she shall come."}, all(answered("oslo"), unchanged)},
		{"upper-case", recovering, map[string]string{"Readme.md": "Made in Porto.\n"}, []string{"Where was it made? It is in the file readme.md."}, all(answered("porto"), unchanged)},
		{"no-such-text", recovering, map[string]string{"greeting.txt": "Good Morning\n"}, []string{"Replace good morning with Good night in greeting.txt."},
			all(holds("greeting.txt", "Good night"), lacks("greeting.txt", "Morning"))},
		{"not-allowed", recovering, map[string]string{"words.txt": "alpha\nbeta\n"}, []string{"Show words.txt with the program less."}, all(answered("alpha", "beta"), unchanged)},
		{"missing", recovering, map[string]string{"keep.txt": "x"}, []string{"Delete trash.txt, if it is there."}, all(untouched("keep.txt"), gone("trash.txt"), says(false))},
	}
}

func impossibleTasks() []task {
	return []task{
		{"mail", impossible, nil, []string{"Send an e-mail to Peter."}, declined},
		{"lamp", impossible, nil, []string{"Turn on the lamp in the kitchen."}, declined},
		{"weather", impossible, nil, []string{"Look up tomorrow's weather in Rome on the internet."}, declined},
		{"call", impossible, nil, []string{"Call my sister on the phone."}, declined},
		{"taxi", impossible, nil, []string{"Order a taxi to the station for eight o'clock."}, declined},
		{"photo", impossible, nil, []string{"Take a photo of the garden."}, declined},
	}
}

func longTasks() []task {
	return []task{
		{"three-files", long, nil, []string{"Write red to one.txt.", "Write green to two.txt.", "Write blue to three.txt.", "Read two.txt and tell me what it says."},
			all(holds("one.txt", "red"), holds("two.txt", "green"), holds("three.txt", "blue"), answered("green"))},
		{"log", long, map[string]string{"log.txt": "start\n"}, []string{"Append one to log.txt.", "Append two to log.txt.", "Append three to log.txt."},
			holds("log.txt", "start one two three")},
		{"change-mind", long, nil, []string{"Write cats to pets.txt.", "Replace cats with dogs in pets.txt.", "Read pets.txt and tell me what it says."},
			all(holds("pets.txt", "dogs"), lacks("pets.txt", "cats"), answered("dogs"))},
		{"clean-up", long, map[string]string{"a.tmp": "1", "b.tmp": "2", "c.txt": "3"}, []string{"Delete a.tmp.", "Delete b.tmp.", "List the files with ls."},
			all(gone("a.tmp"), gone("b.tmp"), untouched("c.txt"), used("shell", "ls"))},
		{"many-reads", long, map[string]string{"k1": "iron\n", "k2": "copper\n", "k3": "silver\n", "k4": "gold\n", "k5": "tin\n"},
			[]string{"What is in k1?", "What is in k2?", "What is in k3?", "What is in k4?", "What is in k5?"}, all(answered("tin"), unchanged)},
		{"big-result", long, map[string]string{"big.txt": bigText(), "key.txt": "violet\n"},
			[]string{"Read big.txt.", "What is the capital of France?", "Read key.txt and tell me what it says."}, all(answered("violet"), unchanged)},
	}
}

// bigText is longer than a small model's window.
func bigText() string {
	var b []byte
	for len(b) < 40_000 {
		b = append(b, "The river runs past the mill and under the old stone bridge. "...)
	}
	return string(b)
}
