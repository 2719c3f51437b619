from common.exercises.judge import LearnerError, require, unchanged

QUESTIONS = {
    "keeps_x": ("KeepsX", False),
    "keeps_square": ("KeepsSquare", False),
    "keeps_slope": ("KeepsSlope", False),
    "keeps_slope_squared": ("KeepsSlope", True),
    "refuses_squared": ("Refuses", True),
}


def check(work):
    unchanged(work, "versions.py", "Write your answers into answers.ini")
    answers, measure = work.answers(), work.load("versions").second_derivative
    for name, (version, squared) in QUESTIONS.items():
        said = answers[name].lower()
        number = None if said == "error" else work.number(name)
        try:
            found = measure(version, squared)
        except LearnerError as error:
            require(number is None, f"{name} = {said}: the call raised an error just now\n({error})")
            continue
        require(number is not None, f"{name} = error: the call ran just now and returned a number")
        require(number == found, f"{name} = {said}: the number measured just now is different")
