"""What a client is told of the modes before it has a session."""

from wire.home import Home


def test_the_status_tells_the_mode_of_new_sessions_and_those_that_can_be_chosen(home: Home) -> None:
    home.config.write_text('mode = "edit"\n')
    status = home.start(options={"trusted": True}).call("agentd/status")
    assert status["mode"] == "edit"
    assert status["modes"] == ["plan", "ask", "edit", "auto"]


def test_mode_full_can_be_chosen_where_the_user_permits_it(home: Home) -> None:
    home.config.write_text("allow_full = true\n")
    status = home.start(options={"trusted": True, "mode": "full"}).call("agentd/status")
    assert status["mode"] == "full"
    assert status["modes"][-1] == "full"
