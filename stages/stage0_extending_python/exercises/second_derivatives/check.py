from common.exercises.judge import LearnerError, require, unchanged

QUESTIONS = {
    "keeps_x": ("KeepsX", False),
    "keeps_square": ("KeepsSquare", False),
    "keeps_slope": ("KeepsSlope", False),
    "keeps_slope_squared": ("KeepsSlope", True),
    "refuses_squared": ("Refuses", True),
}


def check(work):
    unchanged(work, "versions.py", "Your answers go into answers.ini")
    answers, measure = work.answers(), work.load("versions").second_derivative
    for name, (version, squared) in QUESTIONS.items():
        said = answers[name].lower()
        number = None if said == "error" else work.number(name)
        try:
            found = measure(version, squared)
        except LearnerError as error:
            require(number is None, f"{name} = {said}: it ended in an error just now\n({error})")
            continue
        require(number is not None, f"{name} = error: it ran just now, and gave a number")
        require(number == found, f"{name} = {said}: measured just now, it is another number")
