"""A ROS 2 node that tunes the parameters of another node with gibo.

It takes queries from `gibo serve` over HTTP, sets them as parameters of the controller node, calls a service that runs
an episode, and tells the value. The service is a std_srvs/Trigger: `success`, and the value as text in `message`;
without success `message` is the reason.

    gibo init runs/robot --parameters controller.toml
    gibo serve runs/robot &
    python gibo_tuner.py --ros-args -p controller:=/arm_controller -p episode:=/arm/run_episode -p budget:=60
"""

import json
import urllib.request

import rclpy
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters
from rclpy.node import Node
from std_srvs.srv import Trigger


class Tuner(Node):
    """The node; `run` returns when the budget is spent."""

    def __init__(self):
        super().__init__("gibo_tuner")
        self.url = self.declare_parameter("url", "http://127.0.0.1:8643").value
        self.budget = self.declare_parameter("budget", 60).value
        controller = self.declare_parameter("controller", "/controller").value
        self.parameters = self.create_client(SetParameters, f"{controller}/set_parameters")
        self.episode = self.create_client(Trigger, self.declare_parameter("episode", "/run_episode").value)

    def run(self):
        for client in (self.parameters, self.episode):
            client.wait_for_service()
        count = 0
        while count < self.budget:
            for query in self.request("ask", {})["queries"]:
                self.request("tell", {"id": query["id"], **self.evaluate(query["parameters"])})
                count += 1
        best = self.request("best")["best"]
        self.set_parameters_of_controller(best["parameters"])
        self.get_logger().info(f"recommended: {best}")

    def evaluate(self, parameters):
        """A value, or why there is none."""
        refused = self.set_parameters_of_controller(parameters)
        if refused:
            return {"failed": refused}
        answer = self.call(self.episode, Trigger.Request())
        return {"value": float(answer.message)} if answer.success else {"failed": answer.message or True}

    def set_parameters_of_controller(self, parameters):
        """Empty, or why the controller refuses them."""
        request = SetParameters.Request()
        for name, number in parameters.items():
            value = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=float(number))
            if isinstance(number, int):
                value = ParameterValue(type=ParameterType.PARAMETER_INTEGER, integer_value=number)
            request.parameters.append(Parameter(name=name, value=value))
        results = self.call(self.parameters, request).results
        return "; ".join(result.reason for result in results if not result.successful)

    def call(self, client, request):
        future = client.call_async(request)
        rclpy.spin_until_future_complete(self, future)
        return future.result()

    def request(self, path, body=None):
        """An answer of `gibo serve`."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/{path}", data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)


def main():
    rclpy.init()
    node = Tuner()
    try:
        node.run()
    finally:
        node.destroy_node()
        rclpy.shutdown()


if __name__ == "__main__":
    main()
