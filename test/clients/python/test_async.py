"""The async half, with callbacks that are coroutine functions."""

import asyncio

import pytest
from berth import AsyncBerth, errors
from berth.api.servers import servers_list
from berth.testing import AsyncControl, Control


def test_the_calls_of_the_async_client(berth_control: Control) -> None:
    async def scenario() -> None:
        async with AsyncControl(berth_control.base_url, berth_control_token(berth_control)) as control:
            async with await control.account(label="async") as account:
                berth = account.berth
                assert [one async for one in first(berth.changes())] == ["ready"]
                async with await berth.servers.create("async") as server:
                    pieces: list[str] = []

                    async def on_stdout(text: str) -> None:
                        await asyncio.sleep(0)
                        pieces.append(text)

                    result = await server.exec("echo one; echo two", on_stdout=on_stdout)
                    assert "".join(pieces) == result.stdout == "one\ntwo\n"
                    await server.files.write("a.txt", "text")
                    assert await server.files.read("a.txt") == "text"

                    async def answer(question: str) -> str:
                        return "red"

                    goal = "ask: Which colour?\ncomplete: done"
                    assert (await server.tasks.run(goal, on_question=answer)).status == "completed"
                    listed = await servers_list.asyncio(client=berth.api)
                    assert [one.id for one in listed.servers] == [server.id]
                    with pytest.raises(errors.NotFoundError):
                        await server.files.read("none.txt")
                    await account.fail("servers.create", {"lose_response": True}, times=1)
                    await berth.servers.create("once")
                    assert len(await berth.servers.list()) == 2

    asyncio.run(scenario())


def test_a_cancelled_call_ends_its_command(berth_control: Control) -> None:
    async def scenario() -> None:
        with berth_control.account() as account:
            async with AsyncBerth(account.base_url, account.api_key) as berth:
                server = await berth.servers.create("async")
                began = asyncio.Event()

                async def on_stdout(text: str) -> None:
                    began.set()

                call = asyncio.create_task(
                    server.exec("echo $$; trap 'echo ended > end' TERM; sleep 63 & wait", on_stdout=on_stdout)
                )
                await began.wait()
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call
                waited = await server.exec("until test -s end; do sleep 0.05; done; cat end", timeout=10)
                assert waited.stdout == "ended\n"

    asyncio.run(scenario())


def berth_control_token(control: Control) -> str:
    header: str = control._connection.http.headers["authorization"]
    return header.removeprefix("Bearer ")


async def first(changes):  # type: ignore[no-untyped-def]
    async for change in changes:
        yield change.type
        return
