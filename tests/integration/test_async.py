"""tritonclient's asyncio clients, both protocols, many calls in flight."""

import asyncio
import unittest

import tritonclient.grpc as grpc_types
import tritonclient.grpc.aio as grpc_client
import tritonclient.http as http_types
import tritonclient.http.aio as http_client

import reference
from serving import WAIT_S, ServedTest


class AsyncTest(ServedTest):
    def run_bounded(self, coroutine):
        async def bounded():
            return await asyncio.wait_for(coroutine, 2 * WAIT_S)
        return asyncio.run(bounded())

    def check(self, answers, exits, batches):
        for answer, exit_name, batch in zip(answers, exits, batches, strict=True):
            reference.assert_same(self, answer.as_numpy("logits"), "ee_s", exit_name, batch)

    async def exercise(self, client, types):
        self.assertTrue(await client.is_server_ready())
        self.assertTrue(await client.is_model_ready("ee_s"))
        batches = [reference.images(1 + i % 4, seed=i) for i in range(32)]

        def tensor(batch):
            made = types.InferInput("input", batch.shape, "FP32")
            made.set_data_from_numpy(batch)
            return made

        return batches, await asyncio.gather(
            *[client.infer("ee_s", [tensor(batch)]) for batch in batches])

    def test_http(self):
        async def run():
            async with http_client.InferenceServerClient(self.server.http) as client:
                batches, answers = await self.exercise(client, http_types)
                self.check(answers,
                           [a.get_response()["parameters"]["tactus_exit"] for a in answers],
                           batches)
                config = await client.get_model_config("ee_s")
                self.assertEqual(config["max_batch_size"], 10)
        self.run_bounded(run())

    def test_grpc(self):
        async def run():
            async with grpc_client.InferenceServerClient(self.server.grpc) as client:
                batches, answers = await self.exercise(client, grpc_types)
                self.check(answers,
                           [a.get_response().parameters["tactus_exit"].string_param
                            for a in answers],
                           batches)
                index = await client.get_model_repository_index()
                self.assertIn("ee_s", [model.name for model in index.models])
        self.run_bounded(run())

    def test_grpc_stream(self):
        async def run():
            batch = reference.images(1)

            async def requests():
                for i in range(10):
                    tensor = grpc_types.InferInput("input", batch.shape, "FP32")
                    tensor.set_data_from_numpy(batch)
                    yield {"model_name": "ee_s", "inputs": [tensor], "request_id": str(i)}

            async with grpc_client.InferenceServerClient(self.server.grpc) as client:
                seen = set()
                async for answer, error in client.stream_infer(requests()):
                    self.assertIsNone(error)
                    seen.add(answer.get_response().id)
                self.assertEqual(seen, {str(i) for i in range(10)})
        self.run_bounded(run())


if __name__ == "__main__":
    unittest.main(verbosity=2)
